"""Words of answer scales: for each family the place of an option on the scale, and the pattern of its text.

Places only have to be in order within a family. An option of a word list is looked up from the first entry to the last.
"""

from __future__ import annotations

Words = tuple[tuple[float, str], ...]

FREQUENCY: Words = (  # and rates, by `place_rate`
    (
        0,
        r"(?:almost never or )?never(?: done)?|never,? practically never|not at all|(?:none of the|at no) time"
        r"|not (?:during|in) the (?:past|last) \w+",
    ),
    (1, r"hardly ever(?: or never)?|almost never|very rarely"),
    (1.2, r"(?:rarely|seldom) or never|less than a few times a year"),
    (1.5, r"less (?:often|frequently)(?: than (?:that|this))?"),
    (1.8, r"(?:tried )?(?:just |only )?once(?: or twice)?"),
    (2, r"rarely|seldom"),
    (1.9, r"more than once"),
    (2.3, r"only on special (?:holy )?days|(?:a few|several) times"),
    (2.5, r"monthly or less"),
    (3.2, r"only when attending religious services"),
    (3.4, r"not (?:very |so )?(?:often|regularly|frequently)"),
    (3.8, r"(?:nearly|almost) every week"),
    (
        3.9,
        r"occasionally|now and (?:then|again)|(?:from )?time to time(?:, occasionally)?|(?:every )?once in a while|on occasion",
    ),
    (4, r"sometimes|(?:some|part) of the time|some days"),
    (5, r"(?:(?:about )?half|a lot) (?:of )?the time|(?:fairly|quite) often|many times"),
    (5.5, r"most days|(?:nearly|almost|basically|practically|virtually) every ?day|almost daily"),
    (
        6,
        r"often|frequently|regularly|daily or almost daily|every ?day or (?:almost|nearly) every ?day|usually|most of the time",
    ),
    (7, r"very (?:often|frequently)|(?:almost|nearly) always"),
    (8, r"always|often ?(?:/|or) ?always|all (?:of )?the time|constantly|almost constantly"),
)
SHARE_OF_TIME: Words = (
    (0, r"(?:none of the|at no) time|never|not at all(?: sure)?"),
    (0.3, r"(?:none or )?almost none of the time"),
    (0.5, r"rarely or none of the time|hardly ever"),
    (1, r"(?:only |just )?a little (?:bit )?of the time|(?:very |only a )?little of the time|hardly any of the time"),
    (1.5, r"some or a little of the time"),
    (2, r"some(?: of the time|times)|only some of the time|several days|some days"),
    (3, r"less than half (?:of )?the (?:time|days)|occasionally or a moderate amount of (?:the )?time"),
    (3.5, r"(?:about )?half (?:of )?the (?:time|days)"),
    (4, r"a good bit of the time|(?:more than|over) half (?:of )?the (?:time|days)"),
    (5, r"most (?:of the time|days)|nearly every day"),
    (5.5, r"(?:most or|all or almost|almost|nearly) all of the time"),
    (6, r"(?:all|all or (?:most|nearly all)) (?:of )?(?:the )?time|always|every day"),
)
SEVERITY: Words = (
    (0, r"no|none|not at all|never"),
    (0.5, r"very (?:mild|slight)"),
    (1, r"mild|slight|minor|some|a little"),
    (2, r"moderate"),
    (3, r"severe|intense|a lot of|much|serious|great"),
    (4, r"very severe|extreme"),
    (5, r"cannot do|(?:am )?unable to"),
)
LEVEL: Words = (
    (-1, r"no|none"),
    (0, r"(?:very|extremely) low|(?:well|far|much) below"),
    (1, r"low|below|somewhat below|beginner|novice|basic"),
    (2, r"average|moderate|medium|middle|about average|neither high nor low|intermediate"),
    (3, r"high|above|somewhat above|advanced"),
    (4, r"(?:very|extremely) high|(?:well|far|much) above|expert"),
)
CLASS: Words = (
    (0, r"lower|poor|bottom|(?:one of )?(?:the )?worst"),
    (1, r"lower[- ]middle|working|below average"),
    (2, r"middle|average"),
    (3, r"upper[- ]middle|above average"),
    (4, r"upper|rich|wealthy|top|(?:one of )?(?:the )?best"),
)
WORKING: Words = (
    (0, r"not(?: at all)?|no|none|not (?:employed|working)|unemployed"),
    (1, r"part[- ]time"),
    (2, r"full[- ]time"),
)
PRIORITY: Words = (
    (-1, r"should not be done"),
    (
        0,
        r"(?:(?:should )?not (?:be )?an?|no) (?:\w+ )?(?:priority|concern|reason|factor)(?: at all)?"
        r"|not (?:at all )?important(?: at all)?|unimportant",
    ),
    (1, r"(?:an? )?(?:low|lower|lowest|minor) (?:\w+ )?priority|(?:not (?:too|very)|slightly) important"),
    (2.5, r"(?:somewhat|fairly|rather|moderately) important"),
    (3.5, r"very important"),
    (
        2,
        r"(?:an? )?(?:some|medium|moderate|lower but important) (?:\w+ )?priority|(?:should be )?important,? but (?:not|lower|a lower)\b.*",
    ),
    (3, r"(?:an? )?(?:high|major|important) (?:\w+ )?priority|important"),
    (
        4,
        r"(?:should be )?(?:an? |the )?(?:top|very (?:high|important)|highest|urgent) (?:\w+ )?priority"
        r"|(?:absolutely )?(?:essential|critical|crucial|vital)",
    ),
    (5, r"one of the (?:most|top)\b.* priorities"),
)
RELATION: Words = (
    (0, r"(?:an? )?(?:enem(?:y|ies)|adversary)"),
    (1, r"(?:an? )?(?:competitor|rival|unfriendly)"),
    (2, r"neither|neutral"),
    (3, r"(?:an? )?(?:partner|friend(?:ly)?)"),
    (4, r"(?:an? )?(?:ally|close (?:ally|friend))"),
)
SCHOOLING: Words = (
    (0, r"(?:no (?:formal )?(?:education|schooling|qualifications?)|none|less than primary)(?: school)?"),
    (1, r"primary(?: school| education)?|elementary(?: school)?"),
    (
        1.5,
        r"(?:no|less than) hs|(?:less than (?:a )?|some |(?:did|have) not (?:finish|complete)(?:ed)? )high school(?: diploma)?"
        r"|lower secondary(?: school| education)?",
    ),
    (2, r"(?:some |upper )?(?:secondary|high)(?: school| education)?(?: graduates?| diploma)?(?: or less)?"),
    (3, r"some (?:college|university)(?: or .*)?|vocational.*"),
    (3.5, r"associate.*|(?:2|two)-year (?:college )?degree"),
    (
        4,
        r"(?:college|university|bachelor['’]?s?|undergraduate|tertiary|(?:4|four)-year(?: college)?)"
        r"(?: degree| graduates?| education)?(?: or (?:more|higher|above))?"
        r"|college grad\+?",
    ),
    (5, r"(?:post-?grad(?:uate)?|graduate|master['’]?s?|advanced)(?: or professional)?(?: degree| education)?.*"),
    (6, r"(?:doctorate|doctoral|ph\.?d)\b.*"),
)
TIMING: Words = (
    (0, r"(?:has )?already(?: .*)?"),
    (1, r"(?:right )?now|immediately|at once|today"),
    (2, r"soon|shortly|in the near future|(?:with)?in the next (?:few )?(?:weeks|months)"),
    (3, r"(?:with)?in the next (?:few|five|ten|5|10) years"),
    (4, r"later|eventually|some ?day|not for (?:many|some) years|in the (?:distant|far) future"),
    (5, r"never"),
)
KEPT: Words = (
    (0, r"(?:.* )?(?:no|none|not)(?: .*)?"),
    (1, r"(?:.* )?(?:reduced|lower|partial|part)(?: .*)?"),
    (2, r"(?:.* )?(?:current|present|full|same)(?: .*)?"),
)
ACTION: Words = (
    (0, r"(?:.* )?(?:would|will) never\b.*"),
    (1, r"(?:i )?(?:might|may|could|would consider)(?: .*)?"),
    (1, r"(?:i )?have not .* but (?:might|may|could|would)\b.*"),
    (2, r"(?:i )?(?:have|did)(?! not\b) .*\b(?:distant|further|more than)\b.*"),
    (3, r"(?:i )?(?:have|already|did)(?! not\b)(?: .*)?"),
)
SUFFICIENCY: Words = (
    (0, r"(?:.* )?not (?:\w+ ){0,2}enough(?: .*)?|too (?:little|few)(?: .*)?"),
    (-1, r"(?:nowhere near|far from) enough(?: .*)?"),
    (1, r"(?:just |barely |about |only )*(?:enough|adequate|the right amount)(?: .*)?"),
    (2, r"plenty(?: .*)?|more than (?:enough|adequate)(?: .*)?|too (?:much|many)(?: .*)?"),
)
EVER: Words = (
    (0, r"(?:.* )?never(?: .*)?"),
    (1, r"(?:.* )?(?:used to|in the past|previously|formerly|no longer|not any more)(?: .*)?"),
    (2, r"(?:yes,? )?(?:i )?(?:is|are|am|do|does|have|has|currently|still|now|already|at present)(?: .*)?"),
)
LIKENESS: Words = (
    (0, r"not like me at all|not at all like me"),
    (1, r"not like me"),
    (2, r"a little like me"),
    (3, r"somewhat like me"),
    (4, r"like me|mostly like me"),
    (5, r"very much like me"),
)
RATING: Words = (
    (0, r"very (?:poor|bad)|terrible|awful|dreadful|horrible|very (?:poorly|badly)"),
    (1, r"poor(?:ly)?|bad(?:ly)?|inadequate|unsatisfactory"),
    (1.5, r"below average"),
    (2, r"(?:only )?fair|average|mediocre|ok(?:ay)?|acceptable|adequate|satisfactory|neutral|neither good nor (?:bad|poor)"),
    (3, r"good|well|above average"),
    (4, r"very (?:good|well)"),
    (5, r"excellent|outstanding|superb|exceptional|first[- ]rate"),
)
EXTENT: Words = (  # the first match counts: `not very` before `not`
    (0, r"(?:no|none|not) \w+ at all|not an? \w+(?: at all)?"),
    (
        1,
        r"(?:a )?not (?:very|too|so|(?:all )?that|particularly|especially)(?: much)?|not (?:much|a lot)|minimally"
        r"|hardly(?: any(?:(?: \w+)? at all)?)?",
    ),
    (1.2, r"(?:maybe |just |only )?a little(?: bit)?|a bit|(?:very )?slightly"),
    (0.5, r"(?:almost|nearly) none|barely|scarcely|rarely|seldom|hardly ever|(?:hardly|almost no) ?(?:anyone|one)"),
    (0, r"not any(?: \w+)*|(?:no|not) at all"),
    (
        1,
        r"(?:very |only )?little|(?:only |just |very )?(?:a )?few|one|someone|(?:an? |to an? )?(?:small|minor|limited)|low|weak",
    ),
    (0.5, r"not(?= )(?! at all)"),
    (0, r"no|none|nothing|not|not at all|no one|nobody|never|i know (?:no one|nobody)"),
    (1.5, r"neutral|not really"),
    (1.8, r"more or less|(?:\w+ )?only sometimes"),
    (2, r"(?:some|a few) and (?:some|others|a few) not|sometimes|occasionally"),
    (
        2,
        r"somewhat|(?:only |just )?some|less than half|to some extent|maybe|partly|partially|in part"
        r"|roughly|vaguely|several|(?:an? )?fairly|rather|pretty",
    ),
    (2.5, r"(?:an? )?fair amount|reasonably|sufficiently"),
    (3, r"(?:an? )?moderate(?:ly)?|medium(?:-sized?)?|mid-?sized?|a moderate (?:amount|number)|(?:about )?half|acceptable"),
    (3.2, r"quite a (?:bit|lot)|quite"),
    (2.3, r"(?:an? |the )?minority"),
    (3.3, r"more than half|(?:an? |the )?majority"),
    (3.4, r"mostly|usually|a lot|a good deal|good deal|many|much|well|severely|frequently|often|strong"),
    (4.2, r"very much"),
    (
        4,
        r"(?:an? |to an? )?(?:large|huge|major|big|high|strong|great|top)(?: amount| number)?|very|(?:a )?great deal|very well|most"
        r"|considerably|largely|deeply|highly|(?:a )?clear|yes|to a (?:great|large) extent",
    ),
    (
        4.5,
        r"(?:almost|nearly) (?:all|always|everyone|completely)|to a very (?:great|large) extent|a very (?:big|large|great|serious)",
    ),
    (
        5,
        r"extremely|an extreme amount|complete(?:ly)?|total(?:ly)?|full(?:y)?|entirely|exactly|(?:absolutely )?essential"
        r"|all(?: or (?:most|nearly all|almost all))?|everyone|always",
    ),
)
THAN_USUAL: Words = (
    (0, r"not at all|much (?:less|worse)(?: \w+)? than usual"),
    (1, r"(?:rather )?(?:less|worse)(?: \w+)? than usual"),
    (2, r"(?:about )?(?:the )?same as usual|no more(?: \w+)? than usual"),
    (3, r"(?:rather )?(?:more|better)(?: \w+)? than usual"),
    (4, r"much (?:more|better)(?: \w+)? than usual"),
)
DIFFICULTY: Words = (
    (-3, r"very easily"),
    (-2, r"easily"),
    (-1, r"fairly easily"),
    (0, r"(?:with no|without|without any|no) difficulty"),
    (1, r"with (?:a )?little difficulty"),
    (2, r"with some difficulty"),
    (3, r"with (?:much |a lot of )?difficulty"),
    (4, r"with great difficulty"),
    (5, r"unable to do|cannot do(?: at all)?"),
)
LIVING: Words = (
    (0, r"(?:finding it |it is )?very difficult"),
    (1, r"(?:finding it |it is )?(?:quite )?difficult"),
    (2, r"(?:just about )?getting by|coping"),
    (
        0.5,
        r"(?:(?:do|does|did) not|don['’]t|didn['’]t|doesn['’]t|cannot|can['’]t)(?: even)? (?:have enough to )?(?:meet|cover|pay)\b.*",
    ),
    (1.5, r"(?:just|barely|only just) (?:meet|meeting|met|cover|covering)\b.*"),
    (2.5, r"(?:meet|meeting|met|cover|covering)\b.* left(?: over)?\b.*"),
    (3, r"doing (?:al|all )right|doing okay"),
    (4, r"liv(?:e|ing|ed) (?:very )?comfortably"),
)
HEARD_OF: Words = (
    (0, r"(?:(?:i )?(?:have|had) )?(?:never|not) heard\b.*|(?:know |i know )?nothing(?: about .*)?"),
    (1, r"(?:(?:i )?have )?heard (?:of|about|the)\b(?!.*\b(?:lot|great deal)\b).*"),
    (2, r"(?:(?:i )?know (?:a little|some|something)|somewhat familiar|slightly familiar)\b.*"),
    (3, r"(?:(?:i )?know (?:a lot|a great deal|a fair amount|quite a (?:bit|lot))|(?:very )?familiar)\b.*"),
)
RECENCY: Words = (
    (0, r"within (?:the )?(?:past|last) (?:week|month)"),
    (1, r"(?:within|yes,? (?:in|during)) (?:the )?(?:past|last) (?:year|12 months)"),
    (2, r"within (?:the )?(?:past|last) (?:2|two) years"),
    (3, r"within (?:the )?(?:past|last) (?:3|three) years"),
    (5, r"within (?:the )?(?:past|last) (?:5|five) years"),
    (
        9,
        r"(?:[2-5]|two|three|five) or more years ago|more than (?:[1-5]|a|one|two|three|five) years? ago"
        r"|yes,? but not (?:in|during) the (?:past|last) year",
    ),
    (10, r"never|no"),
)


def patterns() -> list[str]:
    """Return the patterns of the families whose words modify others: `a little help`."""
    tables = (FREQUENCY, SHARE_OF_TIME, SEVERITY, LEVEL, CLASS, WORKING, KEPT, ACTION, SUFFICIENCY, EVER, RATING, EXTENT)
    return [pattern for table in tables for _, pattern in table]
