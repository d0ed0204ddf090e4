import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Tool = 'chattr' | 'lsattr' | 'setquota' | 'repquota';

/**
 * Fake quota programs, which store their settings in files: `projects/<directory with % for />` and
 * `limits/<project>`.
 */
const usual: Readonly<Record<Tool, string>> = {
  chattr: `[ "$1 $3 $4" = "-p +P --" ] && [ -d "$5" ] && echo "$2" >"$here/projects/$(echo "$5" | tr / %)"`,
  lsattr: `[ "$1 $2 $3" = "-p -d --" ] || exit 2
shift 3
for directory; do
  if [ ! -d "$directory" ]; then echo "lsattr: No such file or directory while trying to stat $directory" >&2; failed=1; continue; fi
  project=$(cat "$here/projects/$(echo "$directory" | tr / %)" 2>/dev/null || echo 0)
  printf '%5d %s %s\\n' "$project" ----------------------- "$directory"
done
exit \${failed:-0}`,
  setquota: `[ "$1 $2 $4 $6 $7" = "-P -- 0 0 0" ] || exit 2
if [ "$5" = 0 ]; then rm -f "$here/limits/$3"; else echo "$5 $8" >"$here/limits/$3"; fi`,
  repquota: `[ "$1 $2 $3" = "-P -n --" ] || exit 2
echo "*** Report for project quotas on device /dev/vda"
for project in 0 $(cat "$here"/projects/* 2>/dev/null) $(ls "$here/limits"); do echo "#$project --  4  0  0  1  0  0"; done`,
};

/**
 * Creates fakes of the programs that need a kernel with project quotas; `scripts` replaces some of
 * them, and omits those that are undefined. Returns the directory for the PATH.
 */
export function quotaTools(folder: string, scripts: Partial<Record<Tool, string | undefined>> = {}): string {
  for (const name of ['projects', 'limits', 'bin']) mkdirSync(join(folder, name), { recursive: true });
  for (const [name, script] of Object.entries({ ...usual, ...scripts })) {
    if (script === undefined) continue;
    const file = join(folder, 'bin', name);
    writeFileSync(file, `#!/bin/sh\nPATH=/usr/bin:/bin\nhere='${folder}'\n${script}\n`);
    chmodSync(file, 0o755);
  }
  return join(folder, 'bin');
}
