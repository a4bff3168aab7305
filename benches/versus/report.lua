-- Prints what wrk measured as one line of JSON.
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"micros":%d,"bytes":%d,"p50":%d,"p99":%d,"max":%d,"errors":%d,"bad_status":%d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
