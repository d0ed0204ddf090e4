/**
 * What `mount -t nfs` is while a test runs: notes what it was given, and mounts a directory that a server of the test's
 * own has. What the file `trouble` in the control folder says happens first: `fail`, `half` (mounted, and failed all the
 * same), or `hang` for as long as it says so.
 * usage: mount-nfs.ts <control folder> <arguments of mount>
 */
import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const [control = '', ...args] = process.argv.slice(2);
const directory = args.at(-1) ?? '';
const everyMs = 50;

function trouble(): string {
  try {
    return readFileSync(join(control, 'trouble'), 'utf8');
  } catch {
    return '';
  }
}

function fail(): never {
  process.stderr.write('mount.nfs: access denied by server while mounting\n');
  process.exit(32);
}

appendFileSync(join(control, 'calls.log'), `mount ${args.join(' ')}\n`);
if (trouble() === 'fail') fail();
while (trouble() === 'hang') await sleep(everyMs);
const program = fileURLToPath(new URL('fuse-directory.ts', import.meta.url));
const server = spawn(process.execPath, [program, directory, control], {
  detached: true,
  stdio: 'ignore',
  env: { ...process.env, PATH: (process.env['PATH'] ?? '').split(':').slice(1).join(':') },
});
server.unref();
const isMounted = () => readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${directory} `);
while (!isMounted()) await sleep(everyMs);
if (trouble() === 'half') fail();
