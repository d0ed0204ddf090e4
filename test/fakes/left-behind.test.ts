import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { test } from 'node:test';

const scratch = new URL('./scratch-folder.ts', import.meta.url).href;
const leftBehind = new URL('./left-behind.ts', import.meta.url).href;

/** Starts a process that creates a temporary directory; returns the directory once it exists. */
async function withFolder(andThen: string) {
  const script = `
    import { readSync, writeSync } from 'node:fs';
    import { scratchFolder } from '${scratch}';
    import { whenLeftBehind } from '${leftBehind}';
    const folder = scratchFolder('kubeling-left-');
    console.log(folder.path);
    ${andThen}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  const [path] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { child, ended, path: path.trim() };
}

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  test(`the temporary directory of a process is removed when ${signal} ends the process`, async () => {
    const { child, ended, path } = await withFolder('setInterval(() => {}, 1_000);');
    assert.ok(existsSync(path));
    child.kill(signal);
    await ended;
    assert.ok(!existsSync(path));
  });

test('the temporary directory of a process is removed when the process fails without disposing it', async () => {
  for (const andThen of ['throw new Error("so");', '']) {
    const { ended, path } = await withFolder(andThen);
    await ended;
    assert.ok(!existsSync(path));
  }
});

test('a second signal does not interrupt the removal of a temporary directory', async () => {
  const slow = `
    whenLeftBehind(() => {
      writeSync(1, 'slow');
      readSync(0, Buffer.alloc(1));
      folder[Symbol.dispose]();
    });
    setInterval(() => {}, 1_000);`;
  const { child, ended, path } = await withFolder(slow);
  child.kill('SIGTERM');
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  child.stdin.end();
  assert.deepEqual(await ended, [143, null]);
  assert.ok(!existsSync(path));
});
