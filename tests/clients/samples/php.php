<?php
// Makes the calls of The Odds API's sample program in PHP and reads the fields that it reads. Written for this test, as the
// sample comes without a licence.
// Reads PAYLOAD_URL and PAYLOAD_KEY from the environment, and stops at the first failed check.

function check(bool $holds, string $what): void
{
    if (!$holds) {
        fwrite(STDERR, "failed: $what\n");
        exit(1);
    }
}

/** The decoded body and the headers, with names in lower case. */
function get(string $path, array $query): array
{
    $query = http_build_query(['api_key' => getenv('PAYLOAD_KEY')] + $query);
    $context = stream_context_create(['http' => ['ignore_errors' => true, 'protocol_version' => 1.1]]);
    $body = file_get_contents(getenv('PAYLOAD_URL') . "/v4/$path?$query", false, $context);
    check(str_contains($http_response_header[0], ' 200 '), "$path: $http_response_header[0] $body");
    $headers = [];
    foreach (array_slice($http_response_header, 1) as $line) {
        [$name, $value] = explode(':', $line, 2);
        $headers[strtolower($name)] = trim($value);
    }
    return [json_decode($body, false, 512, JSON_THROW_ON_ERROR), $headers];
}

[$sports] = get('sports', []);
check(in_array('soccer_epl', array_column($sports, 'key')), 'soccer_epl is in season');

[$events, $headers] = get('sports/upcoming/odds', [
    'regions' => 'us',
    'markets' => 'h2h,spreads',
    'oddsFormat' => 'decimal',
    'dateFormat' => 'iso',
]);
check(count($events) === 6, 'six events are next');
$outcome = $events[1]->bookmakers[0]->markets[1]->outcomes[0];
check([$outcome->name, $outcome->price, $outcome->point] === ['Denver Nuggets', 1.926, -8.5], 'the price of a spread');
check((int) $headers['x-requests-remaining'] > 0 && (int) $headers['x-requests-used'] > 0, 'the usage headers');

echo "sample in PHP: every call passed\n";
