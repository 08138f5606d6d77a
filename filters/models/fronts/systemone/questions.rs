//! The questions that are decided.

use std::collections::HashSet;

use crate::json::{Type, Walker};
use crate::models::check::read::{
    any_object, array, nullable_string, object, one_of, required, string, twice,
};
use crate::models::check::reject::{Reject, other};
use crate::models::typed_decisions::{AnswerKind, Question};

pub(super) const QUESTIONS: &str = "an object of 1 to 400 questions by their names";
/// Bounds. Source: docs/facts/wire-formats.md 6.8.
const MAX_QUESTIONS: usize = 400;
const MAX_OPTIONS: usize = 255;

const CHOICE: &str = "an object of 2 to 255 options, each with a description or null";
const SCORE: &str = "an array of the names of 2 to 255 levels, the lowest first";
const KINDS: [&str; 3] = ["noul", "choice", "score"];

/// What a question's `criteria` are.
enum Criteria {
    Options(Vec<(Box<str>, Option<Box<str>>)>),
    Levels(Vec<Box<str>>),
}

pub(super) fn questions(walk: &mut Walker<'_>) -> Result<Vec<Question>, Reject> {
    if walk.peek()? != Type::Object {
        return Err(other(walk, QUESTIONS));
    }
    let mut questions = Vec::new();
    named(walk, MAX_QUESTIONS, |walk, id| {
        questions.push(question(walk, id)?);
        Ok(())
    })?;
    match questions.len() {
        0 => Err(Reject::rule(format!("is empty; accepted is {QUESTIONS}"))),
        _ => Ok(questions),
    }
}

/// The members of an object, each of which has a name of its own that is not empty.
fn named(
    walk: &mut Walker<'_>,
    most: usize,
    mut member: impl FnMut(&mut Walker<'_>, &str) -> Result<(), Reject>,
) -> Result<(), Reject> {
    let mut names = HashSet::new();
    any_object(walk, &[], |walk, name, _| {
        if name.trim().is_empty() || name.len() > 256 {
            let said =
                "has a member whose name is empty or longer than 256 bytes; accepted is a name";
            return Err(Reject::rule(said));
        }
        if names.len() >= most {
            let said = format!("is one of more than {most} members");
            return Err(Reject::rule(said).within(&name));
        }
        if !names.insert(name.clone()) {
            return Err(twice().within(&name));
        }
        member(walk, &name).map_err(|reject| reject.within(&name))
    })
}

fn question(walk: &mut Walker<'_>, id: &str) -> Result<Question, Reject> {
    let (mut kind, mut instructions, mut criteria) = (None, None, None);
    object(walk, &["type", "instructions", "criteria"], |walk, key| {
        match key {
            "type" => kind = Some(one_of(walk, &KINDS)?),
            "instructions" => instructions = Some(text(walk)?),
            _ if walk.null()? => {}
            _ => criteria = Some(read_criteria(walk)?),
        }
        Ok(())
    })?;
    let kind = required(kind, "type", "`noul`, `choice` or `score`")?;
    let instructions = required(instructions, "instructions", "a text")?;
    let accepted = |accepted: &str, came: &str| {
        let said = format!("{came}; accepted for a `{kind}` is {accepted}");
        Err(Reject::rule(said).within("criteria"))
    };
    let answers = match (kind, criteria) {
        ("noul", None) => AnswerKind::Noul,
        ("noul", Some(_)) => return accepted("none", "is given"),
        ("choice", Some(Criteria::Options(options))) => AnswerKind::Choice(options),
        ("choice", None) => return accepted(CHOICE, "is missing"),
        ("choice", Some(_)) => return accepted(CHOICE, "is an array"),
        (_, Some(Criteria::Levels(levels))) => AnswerKind::Score(levels),
        (_, None) => return accepted(SCORE, "is missing"),
        (_, Some(_)) => return accepted(SCORE, "is an object"),
    };
    Ok(Question {
        id: id.into(),
        instructions,
        answers,
    })
}

fn read_criteria(walk: &mut Walker<'_>) -> Result<Criteria, Reject> {
    match walk.peek()? {
        Type::Object => {
            let mut options = Vec::new();
            named(walk, MAX_OPTIONS, |walk, name| {
                let description = nullable_string(walk)?.map(|text| text.unescaped().into());
                options.push((name.into(), description));
                Ok(())
            })?;
            enough(options.len(), CHOICE)?;
            Ok(Criteria::Options(options))
        }
        Type::Array => {
            let mut levels: Vec<Box<str>> = Vec::new();
            array(walk, |walk, index| {
                if index >= MAX_OPTIONS {
                    let said = format!("is one of more than {MAX_OPTIONS} levels");
                    return Err(Reject::rule(said));
                }
                let level = text(walk)?;
                if levels.contains(&level) {
                    return Err(Reject::rule("came before; accepted are different levels"));
                }
                levels.push(level);
                Ok(())
            })?;
            enough(levels.len(), SCORE)?;
            Ok(Criteria::Levels(levels))
        }
        _ => Err(other(walk, "an object of options, or an array of levels")),
    }
}

fn enough(count: usize, accepted: &str) -> Result<(), Reject> {
    match count {
        0 | 1 => {
            let said = format!("holds {count}; accepted is {accepted}");
            Err(Reject::rule(said))
        }
        _ => Ok(()),
    }
}

/// A text that is not blank.
fn text(walk: &mut Walker<'_>) -> Result<Box<str>, Reject> {
    let text = string(walk)?.unescaped();
    match text.trim().is_empty() {
        true => Err(Reject::rule("is empty; accepted is a text")),
        false => Ok(text.into()),
    }
}
