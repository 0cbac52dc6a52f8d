package ptc

import (
	_ "embed"
	"strings"

	"github.com/dsh-run/dsh/tools"
)

//go:embed describe.md
var guide string

const prelude = `type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** What a failed call throws. */
declare class ToolCallError extends Error {
  toolName: string;
  code: string;
  callId: string;
  retryable: boolean;
  details?: JsonValue;
  deniedBy?: { stage: string; rule?: string };
  hint?: string;
}

/** The arguments that the program was started with. */
declare const args: JsonValue;
`

// Describe returns what a model is told about the programs of run_code: how
// they are written, and every tool that they can call, as TypeScript derived
// from the schemas. The text is a declaration file that an editor can use. It
// depends on nothing but the list, and is sorted by name.
func Describe(list []tools.Tool) string {
	var b, types strings.Builder
	b.WriteString("/*\n" + guide + "*/\n\n" + prelude)
	b.WriteString("\ndeclare const tools: {\n")
	for _, t := range list {
		if t.Name == tools.RunCode {
			continue
		}
		in := newDeclarer(t.Name, "Args", t.Input)
		out := newDeclarer(t.Name, "Value", t.Output)
		b.WriteString("  /** " + comment(t.Description) + " */\n")
		b.WriteString("  " + propertyName(t.Name) + "(args" + optionalMark(t.Input) + ": " + in.root() + "): Promise<" + out.root() + ">;\n")
		types.WriteString(in.named() + out.named())
	}
	b.WriteString("};\n")
	if types.Len() > 0 {
		b.WriteString("\n" + types.String())
	}
	return b.String()
}

// comment is a text on one line that cannot end a comment.
func comment(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	return strings.ReplaceAll(line, "*/", "*\u200b/")
}
