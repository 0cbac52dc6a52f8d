package main

import (
	"strings"
	"unicode"
)

// likeASCII are the scripts with letters that look like ASCII ones.
var likeASCII = []*unicode.RangeTable{
	unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee,
	unicode.Coptic, unicode.Lisu, unicode.Deseret, unicode.Canadian_Aboriginal,
}

// scriptOf returns the script of r if it is one of likeASCII, else nil.
func scriptOf(r rune) *unicode.RangeTable {
	if r <= unicode.MaxASCII || !unicode.IsLetter(r) {
		return nil
	}
	for _, script := range likeASCII {
		if unicode.Is(script, r) {
			return script
		}
	}
	return nil
}

// letterTwins are letters that look like an ASCII letter or digit, of scripts
// in which most do not.
const letterTwins = "" +
	"аеорсухіјѕһԁԛԝѵӏүьԍҽ" + "АВЕЗІЈКМНОРСТУХЅҮѴԌԚԜӀЬ" + // Cyrillic
	"αγινορυχϲϳϱσ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϒϹϺϿ" + // Greek
	"օսոհգցզյւա" + "ՏՍՕԼՈ" + // Armenian
	"ᎠᎡᎢᎥᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏮᏳᏴ" + "ꭰꭱꭲꭵꭺꭻꭼꮃꮇꮋꮍꮐꮒꮓꮞꮟꮢꮤꮥꮩꮪꮮꮯꮲꮶꮷꮾᏻᏼ" + // Cherokee
	"ᐁᐯᐱᑌᑎᑭᑯᑲᑕᑐᒍᒪᒿᓂᕁᕼᕽᖇᖴᗅᗞᗪᗰᗷᗩ" // Canadian syllabics

func isLetterTwin(r rune) bool {
	return strings.ContainsRune(letterTwins, r) || unicode.In(r, unicode.Lisu, unicode.Coptic, unicode.Deseret)
}

// twinTables are letters and digits that look like ASCII ones in every word:
// their ordinary use is to be told from them.
var twinTables = []*unicode.RangeTable{{
	R16: []unicode.Range16{
		{Lo: 0x0131, Hi: 0x0131, Stride: 1}, // dotless i
		{Lo: 0x017f, Hi: 0x017f, Stride: 1}, // long s
		{Lo: 0x01c0, Hi: 0x01c0, Stride: 1}, // dental click, like |
		{Lo: 0x01c3, Hi: 0x01c3, Stride: 1}, // retroflex click, like !
		{Lo: 0x0237, Hi: 0x0237, Stride: 1}, // dotless j
		{Lo: 0x0251, Hi: 0x0251, Stride: 1}, // alpha
		{Lo: 0x0261, Hi: 0x0262, Stride: 1}, // g
		{Lo: 0x0269, Hi: 0x026a, Stride: 1}, // i
		{Lo: 0x0274, Hi: 0x0274, Stride: 1}, // small capitals
		{Lo: 0x0280, Hi: 0x0280, Stride: 1},
		{Lo: 0x028b, Hi: 0x028b, Stride: 1}, // v with hook
		{Lo: 0x028f, Hi: 0x028f, Stride: 1},
		{Lo: 0x0294, Hi: 0x0294, Stride: 1}, // glottal stop, like ?
		{Lo: 0x0299, Hi: 0x0299, Stride: 1},
		{Lo: 0x029c, Hi: 0x029c, Stride: 1},
		{Lo: 0x029f, Hi: 0x029f, Stride: 1},
		{Lo: 0x1d00, Hi: 0x1d22, Stride: 1}, // phonetic small capitals
		{Lo: 0x2102, Hi: 0x2102, Stride: 1}, // letter-like symbols
		{Lo: 0x210a, Hi: 0x210e, Stride: 1},
		{Lo: 0x2110, Hi: 0x2113, Stride: 1},
		{Lo: 0x2115, Hi: 0x2115, Stride: 1},
		{Lo: 0x2119, Hi: 0x211d, Stride: 1},
		{Lo: 0x2124, Hi: 0x2124, Stride: 4},
		{Lo: 0x2128, Hi: 0x2128, Stride: 1},
		{Lo: 0x212a, Hi: 0x212d, Stride: 1},
		{Lo: 0x212f, Hi: 0x2134, Stride: 1},
		{Lo: 0x2139, Hi: 0x2139, Stride: 1},
		{Lo: 0x2145, Hi: 0x2149, Stride: 1},
		{Lo: 0x2160, Hi: 0x2188, Stride: 1}, // Roman numerals
		{Lo: 0xff10, Hi: 0xff19, Stride: 1}, // full width
		{Lo: 0xff21, Hi: 0xff3a, Stride: 1},
		{Lo: 0xff41, Hi: 0xff5a, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1d400, Hi: 0x1d7ff, Stride: 1}, // mathematical
		{Lo: 0x1fbf0, Hi: 0x1fbf9, Stride: 1}, // segmented digits
	},
}}

// signTwins are signs that look like ASCII ones, in the order of these.
const signTwins = "" +
	"！﹗ⵑ" + "“”‟″ʺ˝״〃＂" + "＃﹟♯" + "＄﹩" + "٪％﹪" + "＆﹠ꝸ" + "‘’‛′ʹʻʼʽʾˈˊ´՚ߴꞌ＇" +
	"（❨﴾〔⸨❲" + "）❩﴿〕⸩❳" + "∗⁎٭✱＊﹡⋆" + "᛭➕＋﹢" + "‚٬،،，﹐、" + "‐‑‒–−⁃˗﹘﹣－➖" + "․．﹒܁܂۔" +
	"∕⁄⧸╱⟋／" + "ː˸꞉∶：﹕︓︰։׃᠃" + "\u037e；﹔⁏" + "＜﹤‹˂❮〈⟨\u2329" + "＝﹦⹀゠᐀" + "＞﹥›˃❯〉⟩\u232a" + "？﹖" + "＠﹫" +
	"［" + "＼﹨∖⧵⧹╲" + "］" + "＾˄ˆ" + "＿﹍﹎﹏ߺ" + "‵ˋ｀\u1fef" + "｛❴﹛" + "∣│⏐❘｜￨" + "｝❵﹜" + "∼˜⁓～῀"

func isSignTwin(r rune) bool { return r > unicode.MaxASCII && strings.ContainsRune(signTwins, r) }

// rightToLeft are scripts that turn the order of what stands beside them.
var rightToLeft = []*unicode.RangeTable{
	unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic, unicode.Adlam,
}
