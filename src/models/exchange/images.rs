//! Images to which the request refers by address. They are fetched when the first attempt needs them in the body.

use std::collections::HashMap;

use filters::fault::Fault;
use filters::models::chat::dimensions::dimensions_of_base64;
use filters::models::chat::inlined::{InlinedImages, MAX_PIXELS, RemoteImage, WantedImage};
use filters::models::routing::wire_limits::MediaLimits;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::models::media::{FetchedImages, Media};
use crate::proxy::context::RequestInfo;

/// The fetched images, for all attempts.
#[derive(Default)]
pub(super) struct Images {
    fetched: Option<FetchedImages>,
    /// The fault of an image that cannot be fetched.
    fault: Option<Fault>,
}

impl Images {
    /// Returns the images in the form that wires need.
    pub(super) fn inlined(&self) -> &InlinedImages {
        let fetched = self.fetched.as_ref();
        fetched.map_or(InlinedImages::NONE, |fetched| &fetched.images)
    }

    /// Returns the fault of an image that cannot be fetched.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.clone()
    }

    /// Returns the images that a wire only accepts in the body and that are not fetched, without repetitions.
    pub(super) fn missing(&self, limits: &MediaLimits, images: &[RemoteImage]) -> Vec<WantedImage> {
        let inlined = self.inlined();
        let mut missing: Vec<WantedImage> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for image in images {
            if !limits.must_fetch(image) || inlined.find(&image.url).is_some() {
                continue;
            }
            let place = *places.entry(&image.url).or_insert(missing.len());
            match missing.get_mut(place) {
                Some(known) => known.count += 1,
                None => missing.push(WantedImage {
                    image: image.clone(),
                    count: 1,
                }),
            }
        }
        missing
    }

    /// Fetches the missing images of an attempt. Images to edit (`is_edited`) have a maximum of pixels.
    pub(super) fn fetch<'a>(
        &'a mut self,
        media: &'a Media,
        info: &'a RequestInfo,
        wanted: Vec<WantedImage>,
        is_edited: bool,
    ) -> BoxFuture<'a, ()> {
        let caller = info.caller.as_deref();
        let organization = caller.map_or("", |caller| &caller.organization_id);
        let fetching = async move {
            let fetched = self.fetched.get_or_insert_with(|| media.none(organization));
            self.fault = media.fetch(organization, &wanted, fetched).await.err();
            if is_edited && self.fault.is_none() {
                self.fault = find_huge(&wanted, &fetched.images);
            }
        };
        fetching.boxed()
    }
}

/// Returns the fault of an image with more pixels than the maximum for editing.
fn find_huge(wanted: &[WantedImage], images: &InlinedImages) -> Option<Fault> {
    wanted.iter().find_map(|WantedImage { image, .. }| {
        let (width, height) = dimensions_of_base64(images.find(&image.url)?.data())?;
        let is_huge = u64::from(width) * u64::from(height) > MAX_PIXELS;
        let param = &image.param;
        let message = format!(
            "`{param}` is an image of {width} x {height} pixels; accepted are at most {MAX_PIXELS} pixels"
        );
        is_huge.then(|| Fault::invalid(param.to_string(), message))
    })
}
