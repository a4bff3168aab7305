//! Random lives of a service and of clients that follow it: connections that break anywhere, restarts, filters, slow readers.
//! In the end every client has the board of Get Odds, and has seen each change of each record once.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fixture::{EVENING, closed, event, event_of, moneyline_at, remove, score, time, total};
use crate::harness::Service;
use crate::harness::follower::{FollowedBoard, Follower, odds_of};
use crate::process::seed::{Random, short_or_long};

const SPORTS: [&str; 2] = ["tennis", "mma"];
const BOOKS: [&str; 3] = ["draftkings", "betmgm", "fanduel"];
/// What clients follow: sports, and filters of Get Odds.
const FILTERS: [(&[&str], &str); 6] = [
    (&SPORTS, ""),
    (&SPORTS, "&bookmaker=betmgm"),
    (&SPORTS, "&market=moneyline&odds_format=decimal"),
    (&SPORTS, "&event_ids=e1,e3"),
    (&SPORTS, "&regions=uk"),
    (&["tennis"], "&competition=tennis_one"),
];

/// A client, which may be disconnected.
struct Client {
    filter: usize,
    board: FollowedBoard,
    connection: Option<Follower>,
}

impl Client {
    async fn connect(&mut self, service: &Service, key: &str) {
        let (sports, query) = FILTERS[self.filter];
        let path = format!("/v1/stream?sports={}{query}", sports.join(","));
        let follower = Follower::open_as(service, key, &path, self.board.last_id.as_deref()).await;
        assert_eq!(follower.status, 200, "{}", follower.head);
        if self.board.last_id.is_none() {
            // What came of a snapshot that broke off does not count.
            self.board.records.clear();
        }
        self.connection = Some(follower);
    }

    /// Reads some events, or those until the next beat.
    async fn read(&mut self, events_max: usize) {
        let Some(connection) = &mut self.connection else { return };
        for _ in 0..events_max {
            let Some(event) = connection.next().await else {
                self.connection = None;
                return;
            };
            self.board.apply(&event);
            if event.kind == "beat" {
                return;
            }
        }
    }

    async fn read_up_to(&mut self, position: &str) {
        while self.board.last_id.as_deref() != Some(position) {
            let event = self.connection.as_mut().expect("a connection").next().await.expect("an event");
            self.board.apply(&event);
        }
    }
}

struct Life {
    service: Service,
    /// Of a key that outlives restarts.
    key: String,
    now_s: u32,
    price: i32,
}

impl Life {
    async fn new() -> Life {
        let service = Service::start().await;
        let key = service.live.clone();
        Life { service, key, now_s: 0, price: 100 }
    }

    async fn change(&mut self, random: &mut Random) {
        let sport = SPORTS[below(random, 2)];
        let id = format!("e{}", below(random, 5));
        let (book, at) = (BOOKS[below(random, 3)], time(self.now_s));
        self.price += 1;
        let lines = match below(random, 12) {
            0 => event(sport, &id, EVENING),
            5 | 6 if sport == "tennis" => event_of(["tennis_one", "tennis_two"][below(random, 2)], &id),
            1 => remove(sport, &id),
            2 => score(sport, &id, "live", self.price, 0, &at),
            3 => closed(sport, &id, book, "moneyline", &at),
            4 if sport == "tennis" => total(sport, &id, book, "total_points", "20.5"),
            _ => moneyline_at(sport, &id, book, &at, self.price, -self.price),
        };
        // What is about an event that does not exist is rejected, as it should be.
        self.service.ingest_report(oddsbox::model::World::Live, &lines).await;
    }

    async fn tick(&mut self) {
        self.now_s += 30;
        self.service.advance(30).await;
    }

    async fn restart(self) -> Life {
        Life { service: self.service.restart_now().await, ..self }
    }

    /// All records that a client with a filter has.
    async fn board(&self, (sports, query): (&[&str], &str)) -> BTreeMap<String, Value> {
        let mut records = BTreeMap::new();
        for sport in sports {
            records.extend(odds_of(&self.service, sport, query).await);
        }
        records
    }

    /// The last position.
    async fn position(&self) -> String {
        let answer = self.service.get("/v1/changes").await;
        answer.json()["position"].as_str().expect("a position").to_owned()
    }
}

fn below(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).expect("a small number")
}

#[tokio::test]
async fn every_client_has_the_board_of_get_odds() {
    let mut random = Random::new();
    for _ in 0..short_or_long(4, 300) {
        let mut life = Life::new().await;
        for sport in SPORTS {
            let lines: String = (0..5).map(|id| event(sport, &format!("e{id}"), EVENING)).collect();
            life.service.ingest(&lines).await;
        }
        // Known from the beginning, so that it can be asked for.
        life.service.ingest(&event_of("tennis_one", "e0")).await;
        let mut clients: Vec<Client> = (0..FILTERS.len())
            .map(|filter| Client { filter, board: FollowedBoard::default(), connection: None })
            .collect();
        for _ in 0..60 {
            match below(&mut random, 20) {
                0 => {
                    for client in &mut clients {
                        client.connection = None;
                    }
                    life = life.restart().await;
                }
                1..=5 => life.tick().await,
                6..=9 => {
                    let at = below(&mut random, clients.len());
                    let client = &mut clients[at];
                    // Wherever it is: between two events, or in the middle of one.
                    if client.connection.is_some() && below(&mut random, 2) == 0 {
                        client.connection = None;
                        continue;
                    }
                    if client.connection.is_none() {
                        client.connect(&life.service, &life.key).await;
                    }
                    // The next tick has a beat, so that there is something to read.
                    life.tick().await;
                    let some = below(&mut random, 8);
                    clients[at].read(some).await;
                }
                _ => life.change(&mut random).await,
            }
        }
        // Everything is published, and everybody reads to the end.
        life.tick().await;
        for client in &mut clients {
            if client.connection.is_none() {
                client.connect(&life.service, &life.key).await;
            }
        }
        life.tick().await;
        let end = life.position().await;
        for client in &mut clients {
            client.read_up_to(&end).await;
            let expected = life.board(FILTERS[client.filter]).await;
            assert_eq!(client.board.comparable(), expected, "{}", FILTERS[client.filter].1);
        }
    }
}
