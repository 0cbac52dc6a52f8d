// Dependency report over a tree of Go packages: how large each package is, what
// it imports, and which packages are imported most.
//
//   dsh-run run --cwd "$(go env GOROOT)/src" testdata/programs/deps.ts
//
// Arguments: the pattern of packages (default: ./...).

const [pattern = "./..."] = args as string[];

// go keeps its cache in the session's own temporary directory, the only place
// that a command may write in read-only.
const list = await tools.bash({
  command: `export GOCACHE="$TMPDIR/go-build" GOFLAGS=-mod=readonly GOTOOLCHAIN=local CGO_ENABLED=0
go list -f '{{.ImportPath}}|{{.Dir}}|{{join .GoFiles " "}}|{{join .Imports " "}}' ${pattern}`,
  description: "list the packages",
});
if (list.exit_code !== 0) throw new Error("go list: " + list.stderr.text);
if (list.stdout.truncated) throw new Error("go list printed more than fits; name fewer packages");

interface Package { name: string; files: string[]; imports: string[]; lines: number }

const words = (text: string) => text.split(" ").filter((w) => w !== "");
const packages: Package[] = list.stdout.text.trimEnd().split("\n").map((line) => {
  const [name, dir, files, imports] = line.split("|");
  return { name, files: words(files).map((f) => `${dir}/${f}`), imports: words(imports), lines: 0 };
});

// lineCount reads no more than it must: the last line is enough for the total.
async function lineCount(file: string): Promise<number> {
  const { total_lines } = await tools.read({ file_path: file, limit: 1 });
  return total_lines ?? 0;
}

await Promise.all(packages.map(async (p) => {
  const counts = await Promise.all(p.files.map(lineCount));
  p.lines = counts.reduce((sum, n) => sum + n, 0);
}));

const importers = new Map<string, number>();
for (const { imports } of packages) {
  for (const name of imports) importers.set(name, (importers.get(name) ?? 0) + 1);
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
packages.sort((a, b) => byText(a.name, b.name));
for (const p of packages) {
  console.log([p.name, p.files.length, p.lines, p.imports.length].join("\t"));
}
console.log("");
const most = [...importers].sort(([a, n], [b, m]) => m - n || byText(a, b)).slice(0, 20);
for (const [name, n] of most) console.log(`${n}\t${name}`);
return `${packages.length} packages, ${packages.reduce((n, p) => n + p.lines, 0)} lines`;
