use proptest::prelude::*;

use super::Balance;
use crate::money::Usd;

#[test]
fn a_cost_beyond_the_balance_is_a_shortfall() {
    let mut balance = Balance::default();
    balance.add(Usd::from_units(100));
    assert!(balance.reserve(Usd::from_units(60)));
    let charge = balance.settle(Usd::from_units(60), Usd::from_units(130));
    assert_eq!(charge.charged, Usd::from_units(100));
    assert_eq!(charge.shortfall, Usd::from_units(30));
    assert_eq!(balance.free(), Usd::ZERO);
}

#[test]
fn a_revoked_lease_never_becomes_free_again() {
    let mut balance = Balance::default();
    balance.add(Usd::from_units(100));
    assert!(balance.reserve(Usd::from_units(60)));
    balance.revoke_lease();
    assert!(!balance.reserve(Usd::from_units(1)));
    let charge = balance.settle(Usd::from_units(60), Usd::from_units(10));
    assert_eq!(charge.shortfall, Usd::from_units(10));
    assert_eq!((balance.free(), balance.reserved()), (Usd::ZERO, Usd::ZERO));
}

proptest! {
    #[test]
    fn a_balance_loses_nothing_and_is_never_negative(
        steps in proptest::collection::vec((0..4u8, 0..100i128, 0..150i128), 0..60),
    ) {
        let mut balance = Balance::default();
        let (mut given, mut open) = (Usd::ZERO, Vec::new());
        for (kind, a, b) in steps {
            let (a, b) = (Usd::from_units(a), Usd::from_units(b));
            match (kind, open.pop()) {
                (0, last) => { balance.add(a); given = given.plus(a); open.extend(last); }
                (1, last) => { open.extend(last); if balance.reserve(a) { open.push(a); } }
                (2, Some(reserved)) => {
                    let charge = balance.settle(reserved, b);
                    prop_assert_eq!(charge.charged.plus(charge.shortfall), b);
                }
                (_, Some(reserved)) => balance.release(reserved),
                _ => {}
            }
            let reserved = open.iter().copied().fold(Usd::ZERO, Usd::plus);
            prop_assert_eq!(balance.reserved(), reserved);
            prop_assert!(balance.free() >= Usd::ZERO);
            prop_assert_eq!(balance.free().plus(reserved).plus(balance.settled()), given);
        }
    }
}

#[test]
fn the_last_unit_can_be_reserved_and_what_is_free_can_be_taken() {
    let mut balance = Balance::default();
    balance.add(Usd::from_units(100));
    assert!(!balance.reserve(Usd::from_units(101)));
    assert!(balance.reserve(Usd::from_units(100)));
    assert!(balance.reserve(Usd::ZERO));
    balance.release(Usd::from_units(30));
    assert_eq!(balance.take_free(), Usd::from_units(30));
    assert_eq!(balance.free(), Usd::ZERO);
    assert_eq!(balance.reserved(), Usd::from_units(70));
}

#[test]
fn what_is_handed_over_is_neither_free_nor_settled() {
    let mut balance = Balance::default();
    balance.add(Usd::from_units(100));
    assert!(balance.reserve(Usd::from_units(60)) && balance.reserve(Usd::from_units(30)));
    balance.hand_over(Usd::from_units(60));
    assert_eq!(balance.free(), Usd::from_units(10));
    assert_eq!(balance.reserved(), Usd::from_units(30));
    assert_eq!(balance.settled(), Usd::ZERO);
    balance.revoke_lease();
    balance.hand_over(Usd::from_units(30));
    balance.add(Usd::from_units(5));
    assert!(balance.reserve(Usd::from_units(5)));
    balance.release(Usd::from_units(5));
    assert_eq!(balance.free(), Usd::from_units(5));
}
