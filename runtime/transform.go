package runtime

import (
	"github.com/evanw/esbuild/pkg/api"
)

// gojaHas are the features newer than ES2017 that goja runs itself; everything
// else is lowered. Each was tried.
var gojaHas = map[string]bool{
	"bigint": true, "class-field": true, "class-private-accessor": true, "class-private-brand-check": true,
	"class-private-field": true, "class-private-method": true, "class-private-static-accessor": true,
	"class-private-static-field": true, "class-private-static-method": true, "class-static-blocks": true,
	"class-static-field": true, "logical-assignment": true, "nullish-coalescing": true, "object-rest-spread": true,
	"optional-catch-binding": true, "optional-chain": true, "regexp-dot-all-flag": true,
	"regexp-lookbehind-assertions": true, "regexp-match-indices": true, "regexp-named-capture-groups": true,
	"regexp-set-notation": true, "regexp-unicode-property-escapes": true,
	"async-generator": false, "for-await": false, "using": false, "decorators": false,
}

// transform turns TypeScript, and JavaScript that goja lacks, into JavaScript
// that it has.
func transform(name, source string) (string, *places, *Failure) {
	result := api.Transform(source, api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ES2017, Supported: gojaHas,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude, Sourcefile: name,
		Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent, LogLimit: 1,
	})
	where := &places{name: name, author: source}
	if len(result.Errors) > 0 {
		return "", nil, where.transformFailure(result.Errors[0])
	}
	where.generated, where.mapping = string(result.Code), result.Map
	return where.generated, where, nil
}

func (p *places) transformFailure(message api.Message) *Failure {
	failure := &Failure{Kind: Syntax, Message: message.Text}
	if at := message.Location; at != nil {
		failure.Line, failure.Column = p.unwrap(at.Line, utf16Length(prefix(p.line(p.author, at.Line), at.Column)))
	}
	return failure
}
