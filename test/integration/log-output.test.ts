import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

const library = new URL('../../src/lib/index.ts', import.meta.url).href;

/**
 * A program that logs far more than a pipe holds; a timer in it shows whether its event loop is
 * still responsive.
 */
const program = `
  import { descriptorOutput, openLog, realClock, Verbosity } from '${library}';
  const clock = realClock();
  const { logger, sink } = openLog({
    clock, output: descriptorOutput(2, clock), format: 'json', verbosity: new Verbosity(0), maxBuffered: 100000,
  });
  for (let i = 0; i < 5000; i++) logger.info('line', { i });
  clock.timer(200, () => process.stdout.write('alive ' + sink.dropped + '\\n'));
  process.stdin.once('data', async () => {
    await sink.flush(new AbortController().signal);
    logger.info('last');
    await sink.flush(new AbortController().signal);
    process.exit(0);
  });
`;

test('a process whose log pipe is not read stays responsive, and logs again when the pipe is read', {
  timeout: 300_000,
}, async () => {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], { stdio: 'pipe' });
  const [alive] = await once(child.stdout, 'data');
  const dropped = Number(/alive (\d+)/.exec(String(alive))?.[1]);
  assert.ok(dropped > 0);
  const log: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => log.push(chunk));
  child.stdin.write('read');
  const [code] = await once(child, 'close');
  const lines = Buffer.concat(log)
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(code, 0);
  assert.equal(lines.at(-1).msg, 'last');
  assert.equal(lines.at(-2).lines, dropped);
  assert.equal(lines.length, 5000 - dropped + 2);
});
