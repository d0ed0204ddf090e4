/**
 * Replaces `mount -t nfs` in a test: records its arguments and mounts a directory of the fake
 * server. The file `problem` in the control directory selects a failure: `fail`, `half` (mounted,
 * but exits with an error), or `hang` while the file contains this word. Usage: mount-nfs.ts
 * <control directory> <arguments of mount>
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
    return readFileSync(join(control, 'problem'), 'utf8');
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
