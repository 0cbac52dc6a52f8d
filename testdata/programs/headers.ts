// Checks that source files begin with a license line, and adds it where it is
// missing.
//
//   dsh-run run testdata/programs/headers.ts
//   dsh-run run --sandbox workspace-write testdata/programs/headers.ts -- fix
//
// Arguments: "fix" to change files (default: only report), the SPDX license
// (default: MIT), and the pattern of the files (default below).

const [action = "check", license = "MIT", pattern = "**/*.{go,ts,js,sh,py}"] = args as string[];
const mark = "SPDX-License-Identifier:";

// comment returns the license line as the language of the file wants it.
const comment = (path: string) => `${/\.(sh|py)$/.test(path) ? "#" : "//"} ${mark} ${license}`;

type Line = { number: number; text: string };

// head is where the line must stand: among the first lines, which may be a
// #! line and other comments.
const hasMark = (lines: Line[]) => lines.slice(0, 10).some(({ text }) => text.includes(mark));

// uniqueStart returns the first lines of a file, as many as it takes for them
// to stand nowhere else in it.
function uniqueStart(lines: string[], from: number): string {
  const text = lines.join("\n") + "\n";
  for (let n = from + 1; n < lines.length; n++) {
    const start = lines.slice(from, n).join("\n") + "\n";
    if (text.indexOf(start) === text.lastIndexOf(start)) return start;
  }
  return lines.slice(from).join("\n");
}

async function addLine(path: string, lines: Line[]) {
  const texts = lines.map((l) => l.text);
  const from = texts[0].startsWith("#!") && texts.length > 1 ? 1 : 0;
  const start = uniqueStart(texts, from);
  await tools.edit({ file_path: path, old_string: start, new_string: comment(path) + "\n\n" + start });
}

const { paths } = await tools.glob({ pattern });
const report: string[] = [];
const totals = { ok: 0, missing: 0, fixed: 0, empty: 0, skipped: 0 };

async function check(path: string) {
  let lines: Line[];
  try {
    ({ lines } = await tools.read({ file_path: path }));
  } catch (error) {
    if (!(error instanceof ToolCallError) || error.code !== "FS_NOT_TEXT") throw error;
    totals.skipped++;
    return;
  }
  if (lines.every(({ text }) => text === "")) {
    totals.empty++;
  } else if (hasMark(lines)) {
    totals.ok++;
  } else if (action === "fix") {
    await addLine(path, lines);
    totals.fixed++;
    report.push(`fixed ${path}`);
  } else {
    totals.missing++;
    report.push(`missing ${path}`);
  }
}

await Promise.all(paths.map(check));
for (const line of report.sort()) console.log(line);
return Object.entries(totals).map(([name, n]) => `${name} ${n}`).join(", ");
