//! What S3 says in XML. Sizes, depths and names are the server's: none is believed.

use roxmltree::{Document, Node, ParsingOptions};

use crate::objects::ListedObject;
use crate::url::decoded;

/// Nodes of a text; a page of a list has a thousand objects of some ten nodes each.
const MOST_NODES: u32 = 200_000;

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<ListedObject>,
    /// What the next page is asked for with.
    pub(super) next: Option<String>,
}

fn parse(text: &str) -> Option<Document<'_>> {
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).ok()
}

fn text_of<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children()
        .find(|child| child.tag_name().name() == name)
        .map(|child| child.text().unwrap_or_default())
}

/// One page of the answer to `list-type=2`.
pub(super) fn page(text: &str) -> Result<Page, String> {
    let wrong = || "the list is none of S3".to_owned();
    let document = parse(text).ok_or_else(wrong)?;
    let root = document.root_element();
    if root.tag_name().name() != "ListBucketResult" {
        return Err(wrong());
    }
    let is_encoded =
        text_of(root, "EncodingType").is_some_and(|name| name.eq_ignore_ascii_case("url"));
    let mut objects = Vec::new();
    for entry in root.children().filter(|child| child.tag_name().name() == "Contents") {
        let key = text_of(entry, "Key").ok_or_else(wrong)?;
        let key = if is_encoded { decoded(&key.replace('+', "%20")) } else { key.to_owned() };
        let len =
            text_of(entry, "Size").and_then(|size| size.trim().parse().ok()).ok_or_else(wrong)?;
        objects.push(ListedObject { key, len });
    }
    let is_cut =
        text_of(root, "IsTruncated").is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    let next = text_of(root, "NextContinuationToken")
        .filter(|token| is_cut && !token.is_empty())
        .map(ToOwned::to_owned);
    if is_cut && next.is_none() {
        return Err("the list goes on, and its server does not say how".into());
    }
    Ok(Page { objects, next })
}

/// The name of an upload in parts that has begun.
pub(super) fn upload_id(text: &str) -> Option<String> {
    let document = parse(text)?;
    text_of(document.root_element(), "UploadId").filter(|id| !id.is_empty()).map(ToOwned::to_owned)
}

/// Whether the parts of an upload have become an object. Servers call the answer `…Result` and `…Response`.
pub(super) fn is_completion(text: &str) -> bool {
    parse(text).is_some_and(|document| {
        document.root_element().tag_name().name().starts_with("CompleteMultipartUpload")
    })
}

/// What an error is called, and the region that it names. Nothing else of it is repeated: it has keys and signatures.
pub(super) fn error(text: &str) -> (Option<String>, Option<String>) {
    let Some(document) = parse(text) else { return (None, None) };
    let root = document.root_element();
    if root.tag_name().name() != "Error" {
        return (None, None);
    }
    let word = |name| {
        text_of(root, name)
            .map(|text| {
                text.chars()
                    .filter(|ch| ch.is_ascii_alphanumeric() || *ch == '-')
                    .take(40)
                    .collect::<String>()
            })
            .filter(|word| !word.is_empty())
    };
    (word("Code"), word("Region"))
}

/// What ends an upload in parts: the tags of all parts, in order.
pub(super) fn completion(tags: &[String]) -> String {
    let mut text =
        String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (i, tag) in tags.iter().enumerate() {
        let tag = tag.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text += &format!("<Part><PartNumber>{}</PartNumber><ETag>{tag}</ETag></Part>", i + 1);
    }
    text + "</CompleteMultipartUpload>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_errors_are_read_and_others_are_not() {
        let list = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>n/=</NextContinuationToken><Contents><Key>a%2Fb+c</Key><Size>7</Size></Contents></ListBucketResult>";
        let found = page(list).unwrap();
        assert_eq!(
            (found.objects, found.next.as_deref()),
            (vec![ListedObject { key: "a/b c".into(), len: 7 }], Some("n/="))
        );
        assert!(
            page(&list.replace("<NextContinuationToken>n/=</NextContinuationToken>", "")).is_err()
        );
        assert!(page(&list.replace("<Size>7", "<Size>-7")).is_err());
        assert!(page("<html/>").is_err());
        assert_eq!(
            error(
                "<Error><Code>Signature&lt;DoesNotMatch</Code><AWSAccessKeyId>secret</AWSAccessKeyId><Region>eu-west-1</Region></Error>"
            ),
            (Some("SignatureDoesNotMatch".into()), Some("eu-west-1".into()))
        );
        assert_eq!(error("<html><Code>x</Code></html>"), (None, None));
        assert_eq!(
            error("<!DOCTYPE x [<!ENTITY a \"b\">]><Error><Code>&a;</Code></Error>"),
            (None, None)
        );
        assert!(is_completion("<CompleteMultipartUploadResponse xmlns=\"x\"/>"));
        assert!(
            !is_completion("<Error><Code>CompleteMultipartUploadResult</Code></Error>")
                && !is_completion("")
        );
        assert_eq!(upload_id("<R><UploadId>u</UploadId></R>").as_deref(), Some("u"));
    }

    #[test]
    fn texts_that_are_meant_to_hurt_are_refused() {
        let deep = "<a>".repeat(100_000);
        assert!(page(&deep).is_err());
        let many = format!("<ListBucketResult>{}</ListBucketResult>", "<x/>".repeat(300_000));
        assert!(page(&many).is_err());
    }
}
