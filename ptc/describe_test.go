package ptc

import (
	"encoding/json"
	"testing"
)

func TestTypesOfSchemas(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"nothing said", `{}`, "JsonValue"},
		{"always", `true`, "JsonValue"},
		{"never", `false`, "never"},
		{"no schema at all", ``, "JsonValue"},
		{"simple types", `{"type":"string"}`, "string"},
		{"an integer is a number", `{"type":"integer"}`, "number"},
		{"several types", `{"type":["string","null"]}`, "string | null"},
		{"constant", `{"const":"a\"b"}`, `"a\"b"`},
		{"enumeration", `{"type":"string","enum":["a","b",1,null]}`, `"a" | "b" | 1 | null`},
		{"list", `{"type":"array","items":{"type":["string","number"]}}`, "(string | number)[]"},
		{"list of anything", `{"type":"array"}`, "JsonValue[]"},
		{"tuple", `{"prefixItems":[{"type":"string"},{"type":"number"}],"minItems":1,"items":false}`, "[string, number?]"},
		{"open tuple", `{"prefixItems":[{"type":"string"}],"minItems":1}`, "[string, ...JsonValue[]]"},
		{"object", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number","description":"how\nmany */"}},"required":["b"]}`,
			"{ b: string; a?: number /* how many *\u200b/ */ }"},
		{"names that are no identifiers", `{"type":"object","properties":{"x-y":{"type":"string"}},"required":["x-y"]}`, `{ "x-y": string }`},
		{"map", `{"type":"object","additionalProperties":{"type":"number"}}`, "{ [key: string]: number }"},
		{"map with known members", `{"properties":{"n":{"type":"string"}},"required":["n"],"additionalProperties":{"type":"number"}}`,
			"{ n: string; [key: string]: number | string }"},
		{"patterns", `{"type":"object","patternProperties":{"^x":{"type":"boolean"}},"additionalProperties":false}`, "{ [key: string]: boolean }"},
		{"closed and empty", `{"type":"object","additionalProperties":false}`, "{}"},
		{"alternatives", `{"anyOf":[{"type":"string"},{"type":"number"}]}`, "string | number"},
		{"all of them", `{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`, "{ a?: string } & { b?: string }"},
		{"alternatives beside a type", `{"type":"object","properties":{"a":{}},"anyOf":[{"type":"null"},{"type":"string"}]}`, "{ a?: JsonValue } & (null | string)"},
		{"what has no counterpart", `{"not":{"type":"string"}}`, "JsonValue /* see the schema: not */"},
		{"a reference that leads nowhere", `{"$ref":"#/$defs/x"}`, "JsonValue /* #/$defs/x cannot be resolved */"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newDeclarer("t", "Args", json.RawMessage(c.schema)).root(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAReferenceBecomesANamedTypeThatMayReferToItself(t *testing.T) {
	d := newDeclarer("list-files", "Value", json.RawMessage(
		`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`))
	if got := d.root(); got != "ListFilesValueNode" {
		t.Errorf("the root is %s", got)
	}
	if got, want := d.named(), "type ListFilesValueNode = { next?: ListFilesValueNode };\n"; got != want {
		t.Errorf("declared %s, want %s", got, want)
	}
}
