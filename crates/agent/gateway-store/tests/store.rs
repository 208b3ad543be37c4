//! The store over SQLite, and over a real PostgreSQL where there is one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::time::Duration;

use gloveport_gateway_store::{
    AuditEvent, AuditFilter, KeyCheck, Limits, Location, Place, Quota, Reserved, SessionState, SnapshotPlace, Store,
    StoreError, Wants,
};
use gloveport_protocol::Secret;
use gloveport_testing::{Postgres, within};

const HOLD: Duration = Duration::from_secs(30);

fn wants(session: &str) -> Wants<'_> {
    Wants { session, image: Some("debian:13"), cpu_millis: 1500, memory_bytes: 1 << 30 }
}

fn running(most: u64) -> Limits {
    Limits { running: Some(most), ..Limits::default() }
}

/// What all that follows needs: a database that is new, and may be opened again.
#[derive(Clone)]
struct New(Location);

impl New {
    async fn open(&self) -> Store {
        Store::open(&self.0).await.unwrap()
    }
}

fn place(reserved: Reserved) -> Place {
    match reserved {
        Reserved::Made(place) => place,
        other => panic!("{other:?}"),
    }
}

async fn a_session_is_made_once_and_the_last_place_is_given_once(new: New) {
    let stores = [new.open().await, new.open().await];
    assert!(stores[0].add_tenant("a", &Limits::default()).await.unwrap());
    assert!(stores[0].add_tenant("b", &running(5)).await.unwrap());
    let race = |tenant: &'static str, session: fn(usize) -> String| {
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let store = stores[number % 2].clone();
                tokio::spawn(async move {
                    let session = session(number);
                    store.reserve(tenant, &wants(&session), &format!("gateway-{}", number % 2), HOLD).await.unwrap()
                })
            })
            .collect();
        async move {
            let mut all = Vec::new();
            for task in tasks {
                all.push(task.await.unwrap());
            }
            all
        }
    };
    let one = race("a", |_| "same".to_owned()).await;
    let made: Vec<&Reserved> = one.iter().filter(|it| matches!(it, Reserved::Made(_))).collect();
    let there = one.iter().filter(|it| matches!(it, Reserved::There(there) if there.session == "same")).count();
    assert_eq!((made.len(), there), (1, 49));
    let last = race("b", |number| format!("s{number}")).await;
    let made = last.iter().filter(|it| matches!(it, Reserved::Made(_))).count();
    let refused =
        last.iter().filter(|it| matches!(it, Reserved::Refused(why) if why.quota == Quota::Running && why.used == 5));
    assert_eq!((made, refused.count()), (5, 45));
    assert_eq!(stores[1].usage("b").await.unwrap().running, 5);
}

async fn quotas_say_what_is_used_and_when_to_try_again(new: New) {
    let store = new.open().await;
    let limits = Limits {
        cpu_millis: Some(3000),
        memory_bytes: Some(10 << 30),
        starts_per_minute: Some(4),
        ..Limits::default()
    };
    store.add_tenant("a", &limits).await.unwrap();
    let reserve = async |session: &str| store.reserve("a", &wants(session), "g", HOLD).await.unwrap();
    let first = place(reserve("one").await);
    let second = place(reserve("two").await);
    let Reserved::Refused(refusal) = reserve("three").await else { panic!() };
    assert_eq!((refusal.quota, refusal.used, refusal.wanted, refusal.most), (Quota::Cpu, 3000, 1500, 3000));
    assert_eq!(refusal.to_string(), "3 of 3 processors of the tenant are in use, and 1.500 more were asked for");
    // What was not made, and what rests, leaves its place.
    store.released(&first, "no image").await.unwrap();
    assert!(store.started(&second, "r2").await.unwrap());
    store.paused("r2").await.unwrap();
    let usage = store.usage("a").await.unwrap();
    assert_eq!((usage.running, usage.paused, usage.cpu_millis, usage.starts), (0, 1, 0, 2));
    let third = place(reserve("three").await);
    place(reserve("four").await);
    store.started(&third, "r3").await.unwrap();
    let refusal = store.resuming("a", "r2").await.unwrap().unwrap();
    assert_eq!((refusal.quota, refusal.is_final()), (Quota::Cpu, false));
    store.ended("r3", "stopped").await.unwrap();
    assert_eq!(store.resuming("a", "r2").await.unwrap(), None);
    assert_eq!(store.of_runtime("r2").await.unwrap().unwrap().state, SessionState::Running);
    store.ended("r2", "stopped").await.unwrap();
    // Four were tried within a minute.
    let Reserved::Refused(refusal) = reserve("five").await else { panic!() };
    assert_eq!((refusal.quota, refusal.used, refusal.most), (Quota::Starts, 4, 4));
    assert!(refusal.retry_after > Duration::from_secs(20) && refusal.retry_after <= Duration::from_secs(61));
    // More than there is at all is final.
    let large = Wants { cpu_millis: 4000, ..wants("large") };
    store.set_tenant("a", &Limits { starts_per_minute: None, ..limits }, false).await.unwrap();
    let Reserved::Refused(refusal) = store.reserve("a", &large, "g", HOLD).await.unwrap() else { panic!() };
    assert!(refusal.is_final());
    let history = store.history(Some("a"), None, 100).await.unwrap();
    assert_eq!(history.len(), 4);
    let ended = history.iter().find(|session| session.session == "one").unwrap();
    assert_eq!(
        (ended.state, ended.reason.as_deref(), ended.image.as_deref()),
        (SessionState::Ended, Some("no image"), Some("debian:13"))
    );
}

async fn a_reservation_ends_with_its_gateway_unless_it_is_renewed(new: New) {
    let store = new.open().await;
    store.add_tenant("a", &running(1)).await.unwrap();
    let dead = place(store.reserve("a", &wants("s"), "dead", Duration::ZERO).await.unwrap());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let next = place(store.reserve("a", &wants("s"), "next", Duration::ZERO).await.unwrap());
    assert!(!store.started(&dead, "r1").await.unwrap() && !store.renew(&dead, HOLD).await.unwrap());
    assert!(store.renew(&next, HOLD).await.unwrap());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let Reserved::There(there) = store.reserve("a", &wants("s"), "other", HOLD).await.unwrap() else { panic!() };
    assert_eq!((there.id, there.state, there.gateway.as_str()), (next.0.clone(), SessionState::Reserved, "next"));
    assert!(store.started(&next, "r2").await.unwrap());
    // One that is there already is not adopted twice.
    assert!(!store.adopt("a", &wants("s"), "r2", false, "g").await.unwrap());
    assert!(store.adopt("a", &wants("t"), "r3", true, "g").await.unwrap());
    let live = store.live(Some("a"), "").await.unwrap();
    let mut states: Vec<_> = live.iter().map(|it| (it.session.as_str(), it.state)).collect();
    states.sort_by_key(|(session, _)| session.to_owned());
    assert_eq!(states, [("s", SessionState::Running), ("t", SessionState::Paused)]);
}

async fn a_sandbox_is_taken_back_or_told_of_and_never_both(new: New) {
    let store = new.open().await;
    store.add_tenant("a", &running(2)).await.unwrap();
    let reserve = async |session: &str| store.reserve("a", &wants(session), "g", HOLD).await.unwrap();
    let of = async |runtime: &str| store.of_runtime(runtime).await.unwrap().map(|row| row.state);
    let made = place(reserve("s").await);
    assert!(store.made(&made, "r1").await.unwrap());
    // It is its tenant's, counts, and others wait for what becomes of it.
    assert_eq!((of("r1").await, store.usage("a").await.unwrap().running), (Some(SessionState::Reserved), 1));
    let Reserved::There(there) = reserve("s").await else { panic!() };
    assert_eq!((there.state, there.runtime.as_deref()), (SessionState::Reserved, Some("r1")));
    // Taken back, it is nobody's, and its place is kept until it is gone.
    assert!(!store.withdrawn(&made, "another", HOLD).await.unwrap());
    assert!(store.withdrawn(&made, "r1", HOLD).await.unwrap());
    assert!(!store.withdrawn(&made, "r1", HOLD).await.unwrap());
    assert_eq!(of("r1").await, None);
    let Reserved::There(there) = reserve("s").await else { panic!() };
    assert_eq!((there.state, there.runtime), (SessionState::Reserved, None));
    store.released(&made, "its client has gone").await.unwrap();
    // Told of, it stays.
    let made = place(reserve("s").await);
    assert!(store.made(&made, "r2").await.unwrap() && store.started(&made, "r2").await.unwrap());
    assert!(!store.withdrawn(&made, "r2", HOLD).await.unwrap() && !store.made(&made, "r2").await.unwrap());
    assert_eq!(of("r2").await, Some(SessionState::Running));
    // Whoever lets it rest or ends it knows of it, however early.
    let early = place(reserve("t").await);
    assert!(store.made(&early, "r3").await.unwrap());
    store.paused("r3").await.unwrap();
    assert!(!store.withdrawn(&early, "r3", HOLD).await.unwrap() && !store.started(&early, "r3").await.unwrap());
    assert_eq!(of("r3").await, Some(SessionState::Paused));
    let ended = place(reserve("u").await);
    assert!(store.made(&ended, "r4").await.unwrap());
    store.ended("r4", "it was stopped").await.unwrap();
    assert!(!store.started(&ended, "r4").await.unwrap());
    assert_eq!(of("r4").await, None);
}

async fn snapshots_have_places_as_sandboxes_have(new: New) {
    let store = new.open().await;
    store.add_tenant("a", &Limits { snapshots: Some(2), ..Limits::default() }).await.unwrap();
    store.add_tenant("b", &Limits::default()).await.unwrap();
    let reserve = async |tenant: &str, name: &str| store.reserve_snapshot(tenant, name, "s", HOLD).await.unwrap();
    assert_eq!(reserve("nobody", "x").await, SnapshotPlace::NoTenant);
    assert_eq!(reserve("a", "x").await, SnapshotPlace::Made);
    assert_eq!(reserve("a", "x").await, SnapshotPlace::There);
    // Names are each tenant's own, and what is being made is not listed yet.
    assert_eq!(reserve("b", "x").await, SnapshotPlace::Made);
    assert_eq!(store.snapshots("a", "").await.unwrap(), []);
    assert!(store.snapshot_made("a", "x", "image-1").await.unwrap());
    assert!(!store.snapshot_made("a", "x", "image-2").await.unwrap());
    let listed = store.snapshots("a", "").await.unwrap();
    let names: Vec<_> = listed.iter().map(|it| (it.name.as_str(), it.session.as_str(), it.image.as_deref())).collect();
    assert_eq!(names, [("x", "s", Some("image-1"))]);
    assert_eq!(store.snapshot_of("image-1").await.unwrap().unwrap().tenant, "a");
    assert_eq!(store.snapshot_of("image-2").await.unwrap(), None);
    assert_eq!(reserve("a", "y").await, SnapshotPlace::Made);
    let SnapshotPlace::Refused(refusal) = reserve("a", "z").await else { panic!() };
    assert_eq!(
        (refusal.used, refusal.most, refusal.to_string().as_str()),
        (2, 2, "2 of 2 snapshots of the tenant are kept")
    );
    assert_eq!(store.usage("a").await.unwrap().snapshots, 2);
    store.forget_snapshot("a", "y").await.unwrap();
    assert_eq!(reserve("a", "z").await, SnapshotPlace::Made);
    store.forget_snapshot("a", "z").await.unwrap();
    for wrong in ["a\0", &"a".repeat(200)] {
        assert!(matches!(store.reserve_snapshot("a", wrong, "s", HOLD).await, Err(StoreError::Value { .. })));
    }
    // What took too long, and what nobody has any more, is somebody's task.
    assert_eq!(store.abandoned_snapshots().await.unwrap(), []);
    assert_eq!(store.reserve_snapshot("a", "late", "s", Duration::ZERO).await.unwrap(), SnapshotPlace::Made);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let abandoned = store.abandoned_snapshots().await.unwrap();
    assert_eq!((abandoned.len(), abandoned[0].name.as_str(), &abandoned[0].image), (1, "late", &None));
    store.forget_snapshot("a", "late").await.unwrap();
    assert!(matches!(store.delete_tenant("a", false).await, Err(StoreError::InUse { sandboxes: 0, snapshots: 1, .. })));
    store.delete_tenant("a", true).await.unwrap();
    store.add_tenant("a", &Limits::default()).await.unwrap();
    assert_eq!((store.snapshots("a", "").await.unwrap(), store.usage("a").await.unwrap().snapshots), (Vec::new(), 0));
    let abandoned = store.abandoned_snapshots().await.unwrap();
    assert_eq!(abandoned.iter().map(|it| it.image.as_deref()).collect::<Vec<_>>(), [Some("image-1")]);
}

async fn keys_open_until_they_are_revoked_expired_or_rotated(new: New) {
    let store = new.open().await;
    store.add_tenant("a", &running(3)).await.unwrap();
    let key = store.add_key("a", "of a test", None).await.unwrap();
    let shown = key.key.expose();
    assert!(shown.starts_with(&format!("gp_{}_", key.id)) && shown.len() == 3 + 16 + 1 + 64);
    let KeyCheck::Good { tenant, id } = store.check_key(shown).await.unwrap() else { panic!() };
    assert_eq!((tenant.name.as_str(), tenant.limits.running, &id), ("a", Some(3), &key.id));
    let listed = store.keys(Some("a"), None).await.unwrap();
    assert_eq!((listed[0].label.as_str(), &shown[..24]), ("of a test", listed[0].start.as_str()));
    assert!(listed[0].used.is_some() && listed[0].expires.is_none());
    // A character more or less, and texts that are none.
    let other = format!("{}{}", &shown[..shown.len() - 1], if shown.ends_with('0') { "1" } else { "0" });
    let long = "a".repeat(100_000);
    for wrong in
        ["", "gp_", "gp__", &other, &shown[..shown.len() - 1], &shown.to_uppercase(), "' OR 1=1 --", &long, "gp_\0_\0"]
    {
        assert_eq!(store.check_key(wrong).await.unwrap(), KeyCheck::Unknown, "{wrong}");
    }
    let rotated = store.rotate_key(&key.id, HOLD).await.unwrap();
    assert_eq!((rotated.tenant.as_str(), key.tenant.as_str()), ("a", "a"));
    for good in [&key, &rotated] {
        assert!(matches!(store.check_key(good.key.expose()).await.unwrap(), KeyCheck::Good { .. }));
    }
    let again = store.rotate_key(&rotated.id, Duration::ZERO).await.unwrap();
    assert_eq!(store.check_key(rotated.key.expose()).await.unwrap(), KeyCheck::Revoked { id: rotated.id.clone() });
    assert!(matches!(store.rotate_key(&rotated.id, HOLD).await, Err(StoreError::Missing { .. })));
    store.revoke_key(&again.id).await.unwrap();
    assert_eq!(store.check_key(again.key.expose()).await.unwrap(), KeyCheck::Revoked { id: again.id.clone() });
    let short = store.add_key("a", "", Some(Duration::ZERO)).await.unwrap();
    assert_eq!(store.check_key(short.key.expose()).await.unwrap(), KeyCheck::Expired { id: short.id });
    assert!(matches!(store.add_key("nobody", "", None).await, Err(StoreError::Missing { .. })));
    assert!(matches!(store.revoke_key("nobody").await, Err(StoreError::Missing { .. })));
}

async fn a_tenant_with_sandboxes_is_deleted_by_force_only_and_its_keys_with_it(new: New) {
    let store = new.open().await;
    assert!(store.add_tenant("a", &running(3)).await.unwrap());
    assert!(!store.add_tenant("a", &running(9)).await.unwrap());
    assert_eq!(store.tenant("a").await.unwrap().limits.running, Some(3));
    let key = store.add_key("a", "", None).await.unwrap();
    let made = place(store.reserve("a", &wants("s"), "g", HOLD).await.unwrap());
    store.started(&made, "r").await.unwrap();
    let limits = Limits {
        images: Some(vec!["ghcr.io/x/*".to_owned()]),
        classes: Some(Vec::new()),
        largest_factor: Some(4),
        longest_life: Some(3600),
        ..Limits::default()
    };
    store.set_tenant("a", &limits, true).await.unwrap();
    let tenant = store.tenant("a").await.unwrap();
    assert_eq!((tenant.limits, tenant.disabled), (limits.clone(), true));
    assert_eq!(store.reserve("a", &wants("t"), "g", HOLD).await.unwrap(), Reserved::NoTenant);
    let KeyCheck::Good { tenant, .. } = store.check_key(key.key.expose()).await.unwrap() else { panic!() };
    assert!(tenant.disabled);
    let refused = store.delete_tenant("a", false).await.unwrap_err();
    assert!(matches!(refused, StoreError::InUse { sandboxes: 1, snapshots: 0, .. }), "{refused}");
    store.delete_tenant("a", true).await.unwrap();
    assert_eq!(store.check_key(key.key.expose()).await.unwrap(), KeyCheck::Unknown);
    assert!(matches!(store.set_tenant("a", &limits, true).await, Err(StoreError::Missing { .. })));
    assert!(matches!(store.delete_tenant("a", true).await, Err(StoreError::Missing { .. })));
    assert_eq!(store.tenants("").await.unwrap(), []);
    assert_eq!(store.history(Some("a"), None, 10).await.unwrap().len(), 1);
}

fn event(action: &str, tenant: &str) -> AuditEvent {
    AuditEvent {
        time: 1_700_000_000_000,
        tenant: Some(tenant.to_owned()),
        action: action.to_owned(),
        result: "done".to_owned(),
        ..AuditEvent::default()
    }
}

/// Runs a statement as somebody does who has the database.
async fn raw(location: &Location, sql: &'static str) -> Result<(), sqlx::Error> {
    use sqlx::{ConnectOptions as _, Connection as _, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};
    match location {
        Location::File(path) => {
            let mut connection = SqliteConnectOptions::new().filename(path).connect().await?;
            sqlx::raw_sql(sql).execute(&mut connection).await?;
            connection.close().await
        }
        Location::Postgres(url) => {
            let mut connection = url.expose().parse::<PgConnectOptions>()?.connect().await?;
            sqlx::raw_sql(sql).execute(&mut connection).await?;
            connection.close().await
        }
    }
}

async fn the_audit_log_is_given_in_pages_and_is_not_changed(new: New) {
    let store = new.open().await;
    let events: Vec<AuditEvent> =
        (0..30).map(|number| event(if number % 2 == 0 { "start" } else { "stop" }, "a")).collect();
    store.append_audit(&events).await.unwrap();
    store.append_audit(&[AuditEvent { detail: Some("x\0\n".repeat(5000)), ..event("start", "b") }]).await.unwrap();
    let newest = store.audit(&AuditFilter { most: Some(1), ..AuditFilter::default() }).await.unwrap();
    assert_eq!(newest[0].tenant.as_deref(), Some("b"));
    assert!(
        newest[0].detail.as_ref().unwrap().chars().count() == 1025
            && !newest[0].detail.as_ref().unwrap().contains('\n')
    );
    let mut filter = AuditFilter {
        tenant: Some("a".to_owned()),
        action: Some("stop".to_owned()),
        most: Some(10),
        ..AuditFilter::default()
    };
    let first = store.audit(&filter).await.unwrap();
    filter.before = first.last().map(|line| line.id);
    let second = store.audit(&filter).await.unwrap();
    assert_eq!((first.len(), second.len()), (10, 5));
    assert!(first.iter().chain(&second).is_sorted_by(|one, other| one.id > other.id));
    let none = AuditFilter { since: Some(1_700_000_000_001), ..AuditFilter::default() };
    assert_eq!(store.audit(&none).await.unwrap(), []);
    // These lines are older than they are kept.
    assert!(store.prune().await.unwrap() >= 31);
    let now = store.now().await.unwrap();
    store.append_audit(&[AuditEvent { time: now, ..event("start", "a") }]).await.unwrap();
    assert_eq!(store.prune().await.unwrap(), 0);
    for sql in ["UPDATE audit SET result = 'x'", "DELETE FROM audit", "UPDATE audit SET time = 0"] {
        let error = raw(&new.0, sql).await.unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    if matches!(new.0, Location::Postgres(_)) {
        assert!(raw(&new.0, "TRUNCATE audit").await.is_err());
    }
    assert_eq!(store.audit(&AuditFilter::default()).await.unwrap().len(), 1);
}

async fn words_of_sql_are_texts(new: New) {
    let store = new.open().await;
    let evil = "x'; DROP TABLE tenants; DELETE FROM sessions; --\\' \" $1 ? %s";
    store.add_tenant("a", &Limits { images: Some(vec![evil.to_owned()]), ..Limits::default() }).await.unwrap();
    store.add_key("a", evil, None).await.unwrap();
    let made = Wants { image: Some(evil), ..wants(evil) };
    let made = place(store.reserve("a", &made, evil, HOLD).await.unwrap());
    store.started(&made, evil).await.unwrap();
    store
        .append_audit(&[AuditEvent {
            target: Some(evil.to_owned()),
            detail: Some(evil.to_owned()),
            ..event(evil, evil)
        }])
        .await
        .unwrap();
    for text in [evil, "\0", "a' OR '1'='1", "%", "*"] {
        assert!(store.find_tenant(text).await.unwrap().is_none());
        assert_eq!(store.keys(Some(text), None).await.unwrap(), []);
        assert!(store.revoke_key(text).await.is_err() && store.rotate_key(text, HOLD).await.is_err());
        assert!(store.delete_tenant(text, true).await.is_err() && store.add_tenant(text, &running(1)).await.is_err());
        assert_eq!(store.usage(text).await.unwrap().running, 0);
        store.paused(text).await.unwrap();
        store.goes_on(text).await.unwrap();
        let filter =
            AuditFilter { tenant: Some(text.to_owned()), action: Some(text.to_owned()), ..AuditFilter::default() };
        store.audit(&filter).await.unwrap();
    }
    let session = store.of_runtime(evil).await.unwrap().unwrap();
    assert_eq!(
        (session.session.as_str(), session.image.as_deref(), session.state),
        (evil, Some(evil), SessionState::Running)
    );
    assert_eq!(store.tenant("a").await.unwrap().limits.images, Some(vec![evil.to_owned()]));
    let line = &store.audit(&AuditFilter::default()).await.unwrap()[0];
    assert_eq!((line.target.as_deref(), line.detail.as_deref()), (Some(evil), Some(evil)));
}

macro_rules! over_sqlite {
    ($($case:ident)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let directory = tempfile::tempdir().unwrap();
                let location = super::Location::File(directory.path().join("it's a #%? database"));
                super::within(super::$case(super::New(location))).await;
            })*
        }

        /// Each in a database of its own.
        async fn all_over(postgres: &Postgres) {
            $({
                let name = stringify!($case);
                let location = Location::parse(&postgres.database(&name[..name.len().min(60)])).unwrap();
                within($case(New(location))).await;
            })*
        }
    };
}

over_sqlite! {
    a_session_is_made_once_and_the_last_place_is_given_once
    quotas_say_what_is_used_and_when_to_try_again
    a_reservation_ends_with_its_gateway_unless_it_is_renewed
    a_sandbox_is_taken_back_or_told_of_and_never_both
    snapshots_have_places_as_sandboxes_have
    keys_open_until_they_are_revoked_expired_or_rotated
    a_tenant_with_sandboxes_is_deleted_by_force_only_and_its_keys_with_it
    the_audit_log_is_given_in_pages_and_is_not_changed
    words_of_sql_are_texts
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_it_holds_over_postgresql() {
    let Some(mut postgres) = Postgres::start() else { return };
    all_over(&postgres).await;
    // Several that begin at once, on an empty database.
    let url = postgres.database("several");
    let location = Location::parse(&url).unwrap();
    let opened = (0..5).map(|_| {
        tokio::spawn({
            let location = location.clone();
            async move { Store::open(&location).await }
        })
    });
    for store in opened.collect::<Vec<_>>() {
        assert_eq!(within(store).await.unwrap().unwrap().schema().await.unwrap(), (2, 2));
    }
    let store = Store::open(&location).await.unwrap();
    store.add_tenant("a", &Limits::default()).await.unwrap();
    store.append_audit(&[event("start", "a")]).await.unwrap();
    // A user who does not own the tables cannot get around the rules of the audit log, and all else works.
    let rights = "CREATE ROLE weak LOGIN PASSWORD 'hunter2-of-postgres'; \
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO weak";
    raw(&location, rights).await.unwrap();
    let weak = Location::parse(&url.replace("gateway:", "weak:")).unwrap();
    let as_weak = within(Store::open(&weak)).await.unwrap();
    as_weak.append_audit(&[AuditEvent { time: as_weak.now().await.unwrap(), ..event("start", "a") }]).await.unwrap();
    place(as_weak.reserve("a", &wants("weak"), "g", HOLD).await.unwrap());
    for sql in ["DELETE FROM audit", "ALTER TABLE audit DISABLE TRIGGER ALL", "DROP TABLE audit", "TRUNCATE audit"] {
        assert!(raw(&weak, sql).await.is_err(), "{sql}");
    }
    assert_eq!(as_weak.audit(&AuditFilter::default()).await.unwrap().len(), 2);
    // Not there for a while: a temporary error without the password, and then all is there.
    postgres.stop();
    let error = within(store.reserve("a", &wants("s"), "g", HOLD)).await.unwrap_err();
    assert!(error.is_temporary() && !error.to_string().contains(Postgres::password()), "{error}");
    let error = within(Store::open(&location)).await.unwrap_err();
    assert!(error.is_temporary() && !format!("{error} {error:?}").contains(Postgres::password()), "{error}");
    postgres.go_on();
    place(within(store.reserve("a", &wants("s"), "g", HOLD)).await.unwrap());
    let named = Location::parse(&url.replace("127.0.0.1", "localhost")).unwrap();
    within(Store::open(&named)).await.unwrap().close().await;
    let wrong = Location::Postgres(Secret::new(url.replace(Postgres::password(), "hunter3")));
    let error = within(Store::open(&wrong)).await.unwrap_err().to_string();
    assert!(error.contains("password") && !error.contains("hunter3"), "{error}");
}

#[tokio::test]
async fn a_database_file_is_private_and_has_no_key_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let store = Store::open(&Location::File(path.clone())).await.unwrap();
    store.add_tenant("a", &Limits::default()).await.unwrap();
    let key = store.add_key("a", "", None).await.unwrap();
    store.check_key(key.key.expose()).await.unwrap();
    let secret = key.key.expose().rsplit('_').next().unwrap().as_bytes().to_vec();
    store.close().await;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", path.display());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn what_is_no_database_and_what_is_newer_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let error = Store::open(&Location::File(directory.path().to_owned())).await.unwrap_err();
    assert!(matches!(error, StoreError::File { .. }), "{error}");
    let path = directory.path().join("text");
    std::fs::write(&path, "this is a text and no database, and long enough to be one").unwrap();
    let error = Store::open(&Location::File(path)).await.unwrap_err().to_string();
    assert!(error.contains("not a database"), "{error}");
    let location = Location::File(directory.path().join("newer"));
    Store::open(&location).await.unwrap().close().await;
    raw(&location, "INSERT INTO gateway_schema (version) VALUES (99)").await.unwrap();
    let error = Store::open(&location).await.unwrap_err();
    assert!(matches!(error, StoreError::Schema { found: 99, known: 2 }), "{error}");
}
