// Inventory of TODO, FIXME and HACK comments by package and age.
//
//   dsh-run run testdata/programs/todos.ts
//   dsh-run run --sandbox workspace-write testdata/programs/todos.ts -- todos.md
//
// Arguments: the file to write the report to (default: none, it is returned),
// and the day to count ages from, YYYY-MM-DD (default: today).

const [output, today = new Date().toISOString().slice(0, 10)] = args as string[];
const now = Date.parse(today + "T00:00:00Z") / 1000 + 86400;

const buckets: [string, number][] = [["week", 7], ["month", 30], ["year", 365], ["older", Infinity]];

interface Row { [bucket: string]: number }

const { matches } = await tools.grep({ pattern: String.raw`\b(TODO|FIXME|HACK)\b`, include: "**/*.{go,ts,js,py,sh,rs,c,h}" });

const linesByFile = new Map<string, number[]>();
for (const { path, line_number } of matches) {
  linesByFile.set(path, [...(linesByFile.get(path) ?? []), line_number]);
}

// quote makes one word of the shell.
const quote = (word: string) => "'" + word.replaceAll("'", `'\\''`) + "'";

// commitTimes returns when each of the lines was last changed, in seconds.
// A file that git does not know counts as changed today.
async function commitTimes(path: string, lines: number[]): Promise<number[]> {
  const ranges = lines.map((n) => `-L ${n},${n}`).join(" ");
  const blame = await tools.bash({
    command: `git blame --line-porcelain ${ranges} -- ${quote(path)}`,
    description: `ages of ${path}`,
  });
  if (blame.exit_code !== 0) return lines.map(() => now - 1);
  return [...blame.stdout.text.matchAll(/^committer-time (\d+)$/gm)].map((m) => Number(m[1]));
}

const rows = new Map<string, Row>();
for (const [path, lines] of linesByFile) {
  const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".";
  const row = rows.get(folder) ?? {};
  for (const time of await commitTimes(path, lines)) {
    const days = Math.floor((now - time) / 86400);
    const [bucket] = buckets.find(([, limit]) => days < limit)!;
    row[bucket] = (row[bucket] ?? 0) + 1;
  }
  rows.set(folder, row);
}

const report = [
  ["package", ...buckets.map(([name]) => name)].join("\t"),
  ...[...rows.keys()].sort().map((folder) =>
    [folder, ...buckets.map(([name]) => rows.get(folder)![name] ?? 0)].join("\t")),
].join("\n") + "\n";

if (!output) return report.trimEnd();

// before is the report of an earlier run, undefined when there is none.
async function before(path: string): Promise<string | undefined> {
  try {
    return (await tools.read({ file_path: path })).lines.map((l) => l.text + "\n").join("");
  } catch (error) {
    if (error instanceof ToolCallError && error.code === "FS_NOT_FOUND") return undefined;
    throw error;
  }
}

if (await before(output) === report) return `${output} is up to date`;
const { operation } = await tools.write({ file_path: output, content: report });
return `${output}: ${operation}`;
