//! Images and files that are not in the request itself.

use super::*;
use crate::models::request::Payload;

#[test]
fn a_file_of_a_provider_goes_to_the_named_provider_alone() {
    let file = json!({"type": "file", "file": {"file_id": "file-1"}});
    let request = request(json!({"messages": [{"role": "user", "content": [file]}]}));
    let catalog = catalog(
        json!([{"id": "m", "providers": [mapping("a", "1", json!({})), mapping("b", "2", json!({}))]}]),
    );
    let on = providers().set(["a", "b"]);
    let health = Health::new(8);
    let planned = |model: &str, file_ids| {
        let resolved = resolve(model, Operation::Chat, &catalog, &on, &[], 0).unwrap();
        let limits = WireLimits {
            media: MediaLimits {
                file_ids,
                ..MediaLimits::WIDEST
            },
            ..WIDE
        };
        plan(
            &request,
            resolved,
            &inputs(&health),
            |_| Some(limits),
            |_| 1.0,
        )
    };
    let pinned = planned("b/m", true).unwrap();
    assert_eq!(&*pinned.attempts[0].mapping.provider, "b");
    for (model, file_ids, said) in [
        ("m", true, "only if `model` names the provider"),
        ("b/m", false, "takes files as `file_data`"),
    ] {
        let fault = planned(model, file_ids).unwrap_err();
        assert_eq!(fault.status(), 400);
        assert!(fault.message.contains(said), "{fault}");
    }
}

#[test]
fn an_image_by_address_suits_a_wire_whose_images_are_fetched() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://a.test/b.png"}});
    let request = request(json!({"messages": [{"role": "user", "content": [image]}]}));
    let Payload::Chat(chat) = &request.payload else {
        panic!("no chat");
    };
    let image = &chat.remote_images[0];
    assert_eq!(&*image.param, "messages[0].content[0].image_url.url");
    let fetching = MediaLimits {
        remote_images: false,
        http_images: false,
        fetches: true,
        ..MediaLimits::WIDEST
    };
    assert!(fetching.must_fetch(image) && !MediaLimits::WIDEST.must_fetch(image));
    let catalog = catalog(json!([{"id": "m", "providers": [mapping("a", "1", json!({}))]}]));
    let on = providers().set(["a"]);
    let health = Health::new(8);
    for (fetches, is_planned) in [(true, true), (false, false)] {
        let limits = WireLimits {
            media: MediaLimits {
                fetches,
                ..fetching
            },
            ..WIDE
        };
        let resolved = resolve("m", Operation::Chat, &catalog, &on, &[], 0).unwrap();
        let planned = plan(
            &request,
            resolved,
            &inputs(&health),
            |_| Some(limits),
            |_| 1.0,
        );
        assert_eq!(planned.is_ok(), is_planned);
    }
}
