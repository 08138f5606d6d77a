//! Reads the prices of a mapping, as decimal text, and computes its price lists.

use std::sync::Arc;

use super::catalog_file::WrittenMapping;
use super::prices_file::{
    TOKEN_PRICE_KEYS, TokenTexts, WrittenLongContext, WrittenOffPeak, WrittenRegionPrices,
    WrittenTiers,
};
use crate::money::{
    Factor, HoursWindow, PerUnit, Price, PriceChange, PriceList, PriceListParts, PriceSet,
    Schedule, ServiceTier, TokenPrices, UnitPrices,
};

/// The price lists of a mapping.
#[derive(Debug, Default)]
pub(super) struct MappingPrices {
    /// That of calls without a region; `None`: unknown.
    pub usual: Option<Arc<PriceList>>,
    /// Of each of its regions, in their order; `None`: unknown, whatever is known of others.
    pub regions: Vec<Option<Arc<PriceList>>>,
}

/// The member of a mapping that has to change, and why.
pub(super) type BadMember = (String, String);

impl WrittenMapping {
    /// Returns the key of a price that cannot be billed, and why.
    pub fn price_problem(&self) -> Option<(String, String)> {
        read_prices(self).err()
    }

    /// Returns whether any price or fee is known of calls without a region.
    pub fn has_prices(&self) -> bool {
        read_prices(self).is_ok_and(|prices| prices.usual.is_some())
    }

    /// Returns whether a service tier has prices of its own.
    pub fn has_tier_prices(&self, tier: &str) -> bool {
        match tier {
            "flex" => self.tier_prices.flex.is_some(),
            "priority" => self.tier_prices.priority.is_some(),
            _ => false,
        }
    }
}

/// What a price list is written as.
struct WrittenList<'a> {
    tokens: TokenTexts<'a>,
    request: Option<&'a str>,
    image: Option<&'a str>,
    annotated_page: Option<&'a str>,
    web_search: Option<&'a str>,
    units: PerUnit<Option<&'a str>>,
    long: &'a [WrittenLongContext],
    tiers: &'a WrittenTiers,
    off_peak: Option<&'a WrittenOffPeak>,
}

/// Returns the price lists of a mapping.
///
/// Errors: the key and why it is not a price.
pub(super) fn read_prices(written: &WrittenMapping) -> Result<MappingPrices, BadMember> {
    let discount = factor("discount", written.discount.as_deref())?;
    if let Some(Err(bad)) = discount.map(Factor::complement) {
        return Err(("discount".to_owned(), bad.to_string()));
    }
    let list = WrittenList {
        tokens: written.token_texts(),
        request: written.request_price.as_deref(),
        image: written.image_price.as_deref(),
        annotated_page: written.annotated_page_price.as_deref(),
        web_search: written.web_search_price.as_deref(),
        units: written.unit_texts(),
        long: &written.long_context,
        tiers: &written.tier_prices,
        off_peak: written.off_peak.as_ref(),
    };
    let usual = read_list(&list, discount, "")?;
    let region = |name: &String| match written.region_prices.get(name) {
        Some(own) => {
            let key = format!("region_prices.{name}.");
            region_list(own, usual.as_ref(), discount, &key).map(|list| list.map(Arc::new))
        }
        None => Ok(None),
    };
    let regions = written
        .regions
        .iter()
        .map(region)
        .collect::<Result<_, _>>()?;
    Ok(MappingPrices {
        usual: usual.map(Arc::new),
        regions,
    })
}

fn region_list(
    own: &WrittenRegionPrices,
    usual: Option<&PriceList>,
    discount: Option<Factor>,
    key: &str,
) -> Result<Option<PriceList>, BadMember> {
    let list = WrittenList {
        tokens: own.token_texts(),
        request: own.request_price.as_deref(),
        image: own.image_price.as_deref(),
        annotated_page: own.annotated_page_price.as_deref(),
        web_search: own.web_search_price.as_deref(),
        units: own.unit_texts(),
        long: &own.long_context,
        tiers: &own.tier_prices,
        off_peak: own.off_peak.as_ref(),
    };
    let Some(multiplier) = factor(&format!("{key}multiplier"), own.multiplier.as_deref())? else {
        return read_list(&list, discount, key);
    };
    if list.says_anything() {
        let why = "excludes prices of the region's own".to_owned();
        return Err((format!("{key}multiplier"), why));
    }
    let scaled = usual.map(|usual| usual.scaled(multiplier)).transpose();
    scaled.map_err(|bad| (format!("{key}multiplier"), format!("`{}`: {bad}", bad.key)))
}

impl WrittenList<'_> {
    /// Returns whether a price or a fee is given, which other calls have in common.
    fn has_prices(&self) -> bool {
        let fees = [
            self.request,
            self.web_search,
            self.image,
            self.annotated_page,
        ];
        let has_units = !self.units.is_zero();
        self.tokens.iter().chain(&fees).any(Option::is_some) || has_units || !self.long.is_empty()
    }

    fn says_anything(&self) -> bool {
        let has_tiers = self.tiers.flex.is_some() || self.tiers.priority.is_some();
        self.has_prices() || has_tiers || self.off_peak.is_some()
    }
}

/// Returns a price list; `None` where no price and no fee is given.
fn read_list(
    written: &WrittenList<'_>,
    discount: Option<Factor>,
    key: &str,
) -> Result<Option<PriceList>, BadMember> {
    let tokens = read_tokens(key, &written.tokens)?;
    let fee = |name: &str, text: Option<&str>| {
        let price = text.map(Price::per_call).transpose();
        let price = price.map_err(|bad| (format!("{key}{name}"), bad.to_string()))?;
        Ok::<_, BadMember>(price)
    };
    let fees = PriceSet {
        request: fee("request_price", written.request)?.unwrap_or_default(),
        web_search: fee("web_search_price", written.web_search)?.unwrap_or_default(),
        image: fee("image_price", written.image)?,
        annotated_page: fee("annotated_page_price", written.annotated_page)?,
        units: read_units(key, &written.units)?,
        ..PriceSet::default()
    };
    let tiers = [
        (ServiceTier::Flex, &written.tiers.flex),
        (ServiceTier::Priority, &written.tiers.priority),
    ];
    let mut changes = Vec::new();
    for (tier, own) in tiers {
        if let Some(own) = own {
            let key = format!("{key}tier_prices.{}.", tier.as_str());
            let long = own.long_context.as_deref();
            let change = read_change(&key, own.multiplier.as_deref(), &own.token_texts(), long)?;
            changes.push((tier, change));
        }
    }
    let off_peak = match written.off_peak {
        Some(own) => {
            let key = format!("{key}off_peak.");
            let long = own.long_context.as_deref();
            let change = read_change(&key, own.multiplier.as_deref(), &own.token_texts(), long)?;
            Some((read_windows(&key, own)?, change))
        }
        None => None,
    };
    let parts = PriceListParts {
        base: fees.with(&tokens),
        long: read_steps(key, written.long)?,
        tiers: changes,
        off_peak,
        discount,
    };
    let list =
        PriceList::new(&parts).map_err(|bad| (format!("{key}{}", bad.key), bad.to_string()))?;
    Ok(written.has_prices().then_some(list))
}

fn read_change(
    key: &str,
    multiplier: Option<&str>,
    tokens: &TokenTexts<'_>,
    long: Option<&[WrittenLongContext]>,
) -> Result<PriceChange, BadMember> {
    let multiplier = factor(&format!("{key}multiplier"), multiplier)?;
    Ok(PriceChange {
        factor: multiplier.unwrap_or(Factor::ONE),
        own: read_tokens(key, tokens)?,
        long: long.map(|long| read_steps(key, long)).transpose()?,
    })
}

fn read_steps(
    key: &str,
    written: &[WrittenLongContext],
) -> Result<Vec<(u64, TokenPrices)>, BadMember> {
    let mut steps: Vec<(u64, TokenPrices)> = Vec::with_capacity(written.len());
    for (at, step) in written.iter().enumerate() {
        let key = format!("{key}long_context[{at}].");
        if steps.iter().any(|(above, _)| *above == step.above_tokens) {
            return Err((
                format!("{key}above_tokens"),
                "stands there twice".to_owned(),
            ));
        }
        steps.push((step.above_tokens, read_tokens(&key, &step.token_texts())?));
    }
    Ok(steps)
}

fn read_windows(key: &str, written: &WrittenOffPeak) -> Result<Schedule, BadMember> {
    let mut windows = Vec::new();
    for (at, window) in written.windows.iter().enumerate() {
        for hours in &window.hours_utc {
            let read = HoursWindow::parse(hours, &window.weekdays);
            windows.push(read.map_err(|bad| (format!("{key}windows[{at}]"), bad.to_string()))?);
        }
    }
    Ok(Schedule::new(windows))
}

fn read_tokens(key: &str, texts: &TokenTexts<'_>) -> Result<TokenPrices, BadMember> {
    let mut read = [None; TOKEN_PRICE_KEYS.len()];
    for ((price, text), name) in read.iter_mut().zip(texts).zip(TOKEN_PRICE_KEYS) {
        let parsed = text.map(Price::per_million).transpose();
        *price = parsed.map_err(|bad| (format!("{key}{name}"), bad.to_string()))?;
    }
    Ok(TokenPrices::from_array(read))
}

fn read_units(key: &str, texts: &PerUnit<Option<&str>>) -> Result<UnitPrices, BadMember> {
    let mut prices = UnitPrices::default();
    for (unit, text) in texts.set() {
        let price = unit.parse_price(text.unwrap_or_default());
        let price = price.map_err(|bad| (format!("{key}{}", unit.price_key()), bad.to_string()))?;
        prices = prices.with(unit, price);
    }
    Ok(prices)
}

fn factor(key: &str, text: Option<&str>) -> Result<Option<Factor>, BadMember> {
    let factor = text.map(Factor::parse).transpose();
    factor.map_err(|bad| (key.to_owned(), bad.to_string()))
}
