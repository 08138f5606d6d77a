//! Images that the request names by address, fetched when the first attempt needs them in the body.

use std::collections::HashMap;

use filters::fault::Fault;
use filters::models::chat::dimensions::dimensions_of_base64;
use filters::models::chat::inlined::{InlinedImages, MAX_PIXELS, RemoteImage, WantedImage};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::ModelExchange;
use crate::models::media::FetchedImages;
use crate::proxy::context::RequestInfo;

/// What was fetched, for all attempts.
#[derive(Default)]
pub(super) struct Images {
    fetched: Option<FetchedImages>,
    /// The images that the attempt at hand waits for.
    wanted: Vec<WantedImage>,
    /// Why they cannot be had.
    fault: Option<Fault>,
}

impl Images {
    /// The images, as wires need them.
    pub(super) fn inlined(&self) -> &InlinedImages {
        let fetched = self.fetched.as_ref();
        fetched.map_or(InlinedImages::NONE, |fetched| &fetched.images)
    }
}

/// Checks whether the attempt at hand has the images that it needs.
///
/// Errors: the fault of an image that cannot be had; `None` if they have to be fetched first.
pub(super) fn find_fault(exchange: &mut ModelExchange) -> Result<(), Option<Fault>> {
    let Some(chat) = exchange.request.payload.chat() else {
        return Ok(());
    };
    if chat.remote_images.is_empty() {
        return Ok(());
    }
    let missing = missing(exchange, &chat.remote_images);
    if missing.is_empty() {
        return Ok(());
    }
    if let Some(fault) = &exchange.images.fault {
        return Err(Some(fault.clone()));
    }
    exchange.images.wanted = missing;
    Err(None)
}

/// Returns whether the attempt at hand has the images that it needs. It is not waited for those that it lacks.
pub(super) fn are_there(exchange: &mut ModelExchange) -> bool {
    let found = find_fault(exchange);
    exchange.images.wanted.clear();
    found.is_ok()
}

/// The images that the wire of the attempt at hand takes in the body alone and that are not there, each address once.
fn missing(exchange: &ModelExchange, images: &[RemoteImage]) -> Vec<WantedImage> {
    let deployment = exchange.deployment();
    let operation = exchange.request.payload.operation();
    let limits = deployment.and_then(|at| at.provider.limits(&at.mapping, operation));
    let Some(limits) = limits else {
        return Vec::new();
    };
    let inlined = exchange.images.inlined();
    let mut missing: Vec<WantedImage> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for image in images {
        if !limits.media.must_fetch(image) || inlined.find(&image.url).is_some() {
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

/// Fetches the images that the attempt at hand waits for; `None`: it waits for none.
pub(super) fn prepare<'a>(
    exchange: &'a mut ModelExchange,
    info: &'a RequestInfo,
) -> Option<BoxFuture<'a, ()>> {
    if exchange.images.wanted.is_empty() {
        return None;
    }
    let wanted = std::mem::take(&mut exchange.images.wanted);
    let organization = info
        .caller
        .as_deref()
        .map_or("", |caller| &caller.organization_id);
    let media = &exchange.models.media;
    let is_edited = exchange.request.payload.images().is_some();
    let images = &mut exchange.images;
    let fetch = async move {
        let fetched = images
            .fetched
            .get_or_insert_with(|| media.none(organization));
        images.fault = media.fetch(organization, &wanted, fetched).await.err();
        if is_edited && images.fault.is_none() {
            images.fault = find_huge(&wanted, &fetched.images);
        }
    };
    Some(fetch.boxed())
}

/// Returns the fault of an image that has more pixels than are edited.
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
