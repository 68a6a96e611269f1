//! Makes tokens of bytes.

mod cursor;
pub(crate) mod number;
mod text;

pub(crate) use cursor::Cursor;

use number::Lexeme;

use crate::constant::NumberConstant;
use crate::fault::{CdlFault, shown};
use crate::schema::Primitive;
use crate::source::CdlText;
use zonda_model::ExtType;

/// The most bytes of a number. No value needs as many.
const MOST_NUMBER: usize = 4096;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    End,
    /// A character that stands for itself.
    Mark(u8),
    Name(Vec<u8>),
    /// A path from the root. The last part may be empty, which means the root itself.
    Path(Vec<Vec<u8>>),
    Text(Vec<u8>),
    Number(NumberConstant),
    /// Hexadecimal digits, an even number of them.
    Opaque(Vec<u8>),
    /// `_`
    Fill,
    Nil,
    Unlimited,
    /// A type whose name is a keyword.
    Type(Primitive),
    Compound,
    Enum,
    OpaqueType,
    /// `types:` and so on.
    Types,
    Dimensions,
    Variables,
    Data,
    Group,
}

impl Token {
    /// The token in messages.
    pub(crate) fn what(&self) -> String {
        match self {
            Token::End => "the end of the text".to_owned(),
            Token::Mark(byte) if byte.is_ascii_graphic() => format!("'{}'", char::from(*byte)),
            Token::Mark(byte) => format!("the byte {byte:#04x}"),
            Token::Name(name) => format!("'{}'", shown(name)),
            Token::Path(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| shown(part).to_string()).collect();
                format!("'/{}'", parts.join("/"))
            }
            Token::Text(_) => "a string".to_owned(),
            Token::Number(_) => "a number".to_owned(),
            Token::Opaque(_) => "an opaque constant".to_owned(),
            Token::Fill => "'_'".to_owned(),
            Token::Nil => "NIL".to_owned(),
            Token::Unlimited => "'unlimited'".to_owned(),
            Token::Type(primitive) => format!("'{}'", primitive.name()),
            Token::Compound => "'compound'".to_owned(),
            Token::Enum => "'enum'".to_owned(),
            Token::OpaqueType => "'opaque'".to_owned(),
            Token::Types => "'types:'".to_owned(),
            Token::Dimensions => "'dimensions:'".to_owned(),
            Token::Variables => "'variables:'".to_owned(),
            Token::Data => "'data:'".to_owned(),
            Token::Group => "'group:'".to_owned(),
        }
    }
}

/// Reads tokens one by one.
#[derive(Debug)]
pub(crate) struct Lexer<'s> {
    cursor: Cursor<'s>,
    /// Where the last token began.
    pub(crate) at: u64,
    /// Bytes of the last token.
    pub(crate) len: usize,
    /// The last token as a name; `None` if it cannot be one.
    word: Option<Vec<u8>>,
    /// Whether hexadecimal digits are an integer, as in the classic language.
    pub(crate) hex_integers: bool,
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || matches!(byte, b'.' | b'@' | b'+' | b'-')
}

/// Bytes that may stand behind `\` within a name.
fn is_escapable(byte: u8) -> bool {
    byte == b' ' || (byte.is_ascii_punctuation() && byte != b'/') || byte.is_ascii_digit()
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s CdlText) -> Lexer<'s> {
        Lexer::over(Cursor::new(source))
    }

    pub(crate) fn over(cursor: Cursor<'s>) -> Lexer<'s> {
        Lexer { cursor, at: 0, len: 1, word: None, hex_integers: false }
    }

    /// The position after the last token.
    pub(crate) fn cursor(&mut self) -> &mut Cursor<'s> {
        &mut self.cursor
    }

    /// The last token as a name, if it is a keyword.
    pub(crate) fn word(&self) -> Option<Vec<u8>> {
        self.word.clone()
    }

    /// A fault at the last token.
    pub(crate) fn fault(&self, message: impl Into<String>) -> CdlFault {
        CdlFault::at(self.at, message).over(self.len)
    }

    /// Skips blanks and comments.
    fn blanks(&mut self) -> Result<(), CdlFault> {
        loop {
            match self.cursor.peek(0) {
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0c) => {
                    self.cursor.take(1);
                }
                Some(b'/') if self.cursor.peek(1) == Some(b'/') => {
                    while self.cursor.peek(0).is_some_and(|byte| byte != b'\n') {
                        self.cursor.take(1);
                    }
                }
                Some(b'/') if self.cursor.peek(1) == Some(b'*') => {
                    let at = self.cursor.offset();
                    self.cursor.take(2);
                    while !self.cursor.sees(b"*/") {
                        if self.cursor.peek(0).is_none() {
                            return Err(CdlFault::at(at, "this comment does not end").over(2));
                        }
                        self.cursor.take(1);
                    }
                    self.cursor.take(2);
                }
                _ => return Ok(()),
            }
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// Bytes that are no token; errors of reading the text.
    pub(crate) fn next(&mut self) -> Result<Token, CdlFault> {
        self.blanks()?;
        self.word = None;
        self.at = self.cursor.offset();
        let token = self.token()?;
        let len = self.cursor.offset() - self.at;
        self.len = usize::try_from(len).unwrap_or(usize::MAX).max(1);
        Ok(token)
    }

    fn token(&mut self) -> Result<Token, CdlFault> {
        let Some(first) = self.cursor.peek(0) else {
            return match self.cursor.failure() {
                Some(error) => Err(error.into()),
                None => Ok(Token::End),
            };
        };
        match first {
            b'"' => self.string(),
            b'\'' => self.character(),
            b'/' => self.path(),
            b'0'..=b'9' | b'.' => self.number(),
            b'+' | b'-' => match self.cursor.peek(1) {
                Some(b'0'..=b'9' | b'.') => self.number(),
                _ => self.signed_word(first),
            },
            _ => match self.name_len(0) {
                0 => {
                    self.cursor.take(1);
                    Ok(Token::Mark(first))
                }
                len => self.keyword_or_name(len),
            },
        }
    }

    /// The length of the name that begins `from` bytes ahead; 0 if there is none.
    fn name_len(&mut self, from: usize) -> usize {
        let mut len = from;
        loop {
            match self.cursor.peek(len) {
                Some(byte) if begins_name(byte) => len += 1,
                Some(byte) if len > from && continues_name(byte) => len += 1,
                Some(b'\\') => match self.cursor.peek(len + 1) {
                    Some(byte) if is_escapable(byte) => len += 2,
                    _ => return len - from,
                },
                _ => return len - from,
            }
        }
    }

    fn keyword_or_name(&mut self, len: usize) -> Result<Token, CdlFault> {
        if self.cursor.peek(len) == Some(b':') {
            let section = match self.cursor.ahead(len) {
                b"types" => Some(Token::Types),
                b"dimensions" => Some(Token::Dimensions),
                b"variables" => Some(Token::Variables),
                b"data" => Some(Token::Data),
                b"group" => Some(Token::Group),
                _ => None,
            };
            if let Some(section) = section {
                self.cursor.take(len + 1);
                return Ok(section);
            }
        }
        let word = self.cursor.take(len);
        let token = keyword(word);
        match token {
            Some(token) => {
                self.word = Some(word.to_vec());
                Ok(token)
            }
            None => Ok(Token::Name(text::unescape_name(word)?)),
        }
    }

    /// `-Infinity` and the like, or a sign that stands for itself.
    fn signed_word(&mut self, sign: u8) -> Result<Token, CdlFault> {
        let len = self.name_len(1);
        let number = special_number(&self.cursor.ahead(1 + len)[1..]);
        let number = match (number, sign) {
            (Some(NumberConstant::Double(value)), b'-') => NumberConstant::Double(-value),
            (Some(NumberConstant::Float(value)), b'-') => NumberConstant::Float(-value),
            (Some(number), _) => number,
            (None, _) => {
                self.cursor.take(1);
                return Ok(Token::Mark(sign));
            }
        };
        self.cursor.take(1 + len);
        Ok(Token::Number(number))
    }

    fn number(&mut self) -> Result<Token, CdlFault> {
        let mut len = 0;
        while self
            .cursor
            .peek(len)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-'))
        {
            len += 1;
        }
        // There may be two hexadecimal digits for each byte of an opaque value.
        let text = self.cursor.ahead(len);
        let is_hex = matches!(text, [b'0', b'x' | b'X', ..]);
        if len > MOST_NUMBER && !is_hex {
            return Err(CdlFault::at(self.at, "this number has too many digits"));
        }
        match number::lex(text) {
            (Lexeme::Number(number), len) => {
                self.cursor.take(len);
                Ok(Token::Number(number))
            }
            (Lexeme::Opaque, len) if self.hex_integers => {
                let digits = std::str::from_utf8(&self.cursor.take(len)[2..]).unwrap_or_default();
                match u32::from_str_radix(digits, 16) {
                    Ok(value) => Ok(Token::Number(NumberConstant::Int(value.cast_signed()))),
                    Err(_) => {
                        Err(CdlFault::at(self.at, "this integer has more than 32 bits").over(len))
                    }
                }
            }
            (Lexeme::Opaque, len) => {
                let mut digits = self.cursor.take(len)[2..].to_ascii_lowercase();
                if digits.len() % 2 == 1 {
                    digits.push(b'0');
                }
                Ok(Token::Opaque(digits))
            }
            (Lexeme::Bad(why), len) => Err(CdlFault::at(self.at, why).over(len)),
        }
    }

    fn string(&mut self) -> Result<Token, CdlFault> {
        let mut len = 1;
        loop {
            match self.cursor.peek(len) {
                Some(b'"') => break,
                Some(b'\\') => len += 2,
                Some(_) => len += 1,
                None => match self.cursor.failure() {
                    Some(error) => return Err(error.into()),
                    None => return Err(CdlFault::at(self.at, "this string does not end")),
                },
            }
        }
        let text = self.cursor.take(len + 1);
        Ok(Token::Text(text::unescape(&text[1..len])?))
    }

    /// A byte: `'x'`, `'\n'`, `'\033'`, `'\x1b'`.
    fn character(&mut self) -> Result<Token, CdlFault> {
        let len = match (self.cursor.peek(1), self.cursor.peek(2)) {
            (Some(b'\\'), Some(b'0'..=b'7')) if self.cursor.peek(5) == Some(b'\'') => 5,
            (Some(b'\\'), Some(b'x' | b'X')) if self.cursor.peek(5) == Some(b'\'') => 5,
            (Some(b'\\'), Some(_)) => 3,
            _ => 2,
        };
        if self.cursor.peek(len) != Some(b'\'') {
            let why = "a character is one byte, or an escape such as '\\n' or '\\033', in quotes";
            return Err(CdlFault::at(self.at, why));
        }
        let text = self.cursor.take(len + 1);
        match text::unescape(&text[1..len])?[..] {
            [byte] => Ok(Token::Number(NumberConstant::Byte(byte.cast_signed()))),
            _ => Err(CdlFault::at(self.at, "this character is no single byte").over(len + 1)),
        }
    }

    fn path(&mut self) -> Result<Token, CdlFault> {
        let mut parts = Vec::new();
        while self.cursor.peek(0) == Some(b'/') {
            let len = self.name_len(1);
            if len == 0 && !parts.is_empty() {
                break;
            }
            let part = &self.cursor.take(1 + len)[1..];
            parts.push(text::unescape_name(part)?);
            if len == 0 {
                break;
            }
        }
        Ok(Token::Path(parts))
    }

    /// The name of the dataset: everything up to `{`, without blanks and control characters.
    pub(crate) fn dataset_name(&mut self) -> Result<Vec<u8>, CdlFault> {
        self.at = self.cursor.offset();
        let mut len = 0;
        while self.cursor.peek(len).is_some_and(|byte| byte != b'{') {
            len += 1;
        }
        if self.cursor.peek(len).is_none() {
            return Err(CdlFault::at(self.at, "expected '{' behind the name of the dataset"));
        }
        let name = self.cursor.take(len);
        Ok(name.iter().copied().filter(|byte| *byte > b' ').collect())
    }
}

/// Words that are no names.
fn keyword(word: &[u8]) -> Option<Token> {
    if let Some(number) = special_number(word) {
        return Some(Token::Number(number));
    }
    Some(match word {
        b"_" => Token::Fill,
        b"NIL" | b"nil" | b"Nil" => Token::Nil,
        b"unlimited" | b"UNLIMITED" => Token::Unlimited,
        b"compound" | b"struct" | b"structure" => Token::Compound,
        b"enum" => Token::Enum,
        b"opaque" => Token::OpaqueType,
        b"char" => Token::Type(Primitive::Atomic(ExtType::Char)),
        b"byte" => Token::Type(Primitive::Atomic(ExtType::Byte)),
        b"short" => Token::Type(Primitive::Atomic(ExtType::Short)),
        b"int" | b"long" | b"integer" => Token::Type(Primitive::Atomic(ExtType::Int)),
        b"float" | b"real" => Token::Type(Primitive::Atomic(ExtType::Float)),
        b"double" => Token::Type(Primitive::Atomic(ExtType::Double)),
        _ => return None,
    })
}

/// Numbers that are words.
pub(crate) fn special_number(word: &[u8]) -> Option<NumberConstant> {
    Some(match word {
        b"NaN" | b"nan" => NumberConstant::Double(f64::NAN),
        b"NaNf" | b"nanf" => NumberConstant::Float(f32::NAN),
        b"Infinity" | b"DoubleInf" => NumberConstant::Double(f64::INFINITY),
        b"Infinityf" | b"Inff" | b"FloatInf" => NumberConstant::Float(f32::INFINITY),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token>, CdlFault> {
        let source = CdlText::from_bytes(text.as_bytes().to_vec()).unwrap();
        let mut lexer = Lexer::new(&source);
        let mut out = Vec::new();
        loop {
            match lexer.next()? {
                Token::End => return Ok(out),
                token => out.push(token),
            }
        }
    }

    fn name(text: &str) -> Token {
        Token::Name(text.as_bytes().to_vec())
    }

    #[test]
    fn names_and_words() {
        let int = Token::Type(Primitive::Atomic(ExtType::Int));
        for (text, expected) in [
            ("int long x-y.z@a+1", vec![int.clone(), int.clone(), name("x-y.z@a+1")]),
            (r"a\ b\:c \4x floaty", vec![name("a b:c"), name("4x"), name("floaty")]),
            ("data: data :", vec![Token::Data, name("data"), Token::Mark(b':')]),
            ("datax:", vec![name("datax"), Token::Mark(b':')]),
            ("_ _x __", vec![Token::Fill, name("_x"), name("__")]),
            ("é// comment\n/* more\n*/y", vec![name("é"), name("y")]),
            ("NIL unlimited", vec![Token::Nil, Token::Unlimited]),
        ] {
            assert_eq!(tokens(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn paths() {
        let path = |parts: &[&str]| {
            Token::Path(parts.iter().map(|part| part.as_bytes().to_vec()).collect())
        };
        assert_eq!(tokens("/a/b").unwrap(), [path(&["a", "b"])]);
        assert_eq!(tokens("/").unwrap(), [path(&[""])]);
        assert_eq!(tokens(r"/a\ b /c").unwrap(), [path(&["a b"]), path(&["c"])]);
    }

    #[test]
    fn constants() {
        let number = |number| Token::Number(number);
        for (text, expected) in [
            (r#""a\"b\n""#, vec![Token::Text(b"a\"b\n".to_vec())]),
            ("\"two\nlines\"", vec![Token::Text(b"two\nlines".to_vec())]),
            (
                r"'a' '\n' '\033' '\x41'",
                [97, 10, 27, 65].map(|n| number(NumberConstant::Byte(n))).to_vec(),
            ),
            (r"'\'' '\\' ' '", [39, 92, 32].map(|n| number(NumberConstant::Byte(n))).to_vec()),
            ("0xABC", vec![Token::Opaque(b"abc0".to_vec())]),
            (
                "1,-2",
                vec![
                    number(NumberConstant::Int(1)),
                    Token::Mark(b','),
                    number(NumberConstant::Int(-2)),
                ],
            ),
            (
                "-Infinity Inff",
                [NumberConstant::Double(f64::NEG_INFINITY), NumberConstant::Float(f32::INFINITY)]
                    .map(number)
                    .to_vec(),
            ),
            ("- x", vec![Token::Mark(b'-'), name("x")]),
        ] {
            assert_eq!(tokens(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_token() {
        for (text, at) in [
            ("x \"abc", 2),
            ("'ab'", 0),
            ("'", 0),
            (" /* ", 1),
            (" .", 1),
            ("99999999999999999999", 0),
        ] {
            let fault = tokens(text).unwrap_err();
            assert_eq!(fault.at, Some(at), "{text}: {fault}");
        }
        let long = "1".repeat(5000);
        assert!(tokens(&long).is_err());
        assert!(tokens("\"\\").is_err() && tokens("\\").unwrap() == [Token::Mark(b'\\')]);
    }

    #[test]
    fn name_of_the_dataset() {
        let source = CdlText::from_bytes(b"netcdf a b/c {".to_vec()).unwrap();
        let mut lexer = Lexer::new(&source);
        assert_eq!(lexer.next().unwrap(), name("netcdf"));
        assert_eq!(lexer.dataset_name().unwrap(), b"ab/c");
        assert_eq!(lexer.next().unwrap(), Token::Mark(b'{'));
    }
}
