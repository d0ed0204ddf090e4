import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { feedWatchdog, openFileLimits, serviceManager, watchdogMs } from './service-manager.ts';

test('sends no notification without a service manager', () => {
  assert.equal(serviceManager({}, new VirtualClock()), undefined);
  assert.equal(serviceManager({ NOTIFY_SOCKET: '' }, new VirtualClock()), undefined);
});

test('accepts a watchdog interval only if it is a number, over a second, and meant for this process', () => {
  assert.equal(watchdogMs({}), undefined);
  assert.equal(watchdogMs({ WATCHDOG_USEC: '30000000' }), 30_000);
  assert.equal(watchdogMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: String(process.pid) }), 30_000);
  assert.equal(watchdogMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '1' }), undefined);
  for (const wrong of ['1000000', '0', '-1', 'soon']) {
    assert.throws(() => watchdogMs({ WATCHDOG_USEC: wrong }), { code: 'SERVICE_WATCHDOG' }, wrong);
  }
  assert.throws(() => watchdogMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: 'x' }), {
    message: /WATCHDOG_PID/,
  });
});

test('sends two watchdog notifications per interval while all checks pass, and none otherwise', async () => {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const reported: string[] = [];
  let problem: string | undefined;
  let refuses = false;
  const manager = {
    async notify(state: string) {
      if (refuses) throw new Error('no service manager listens on the socket');
      reported.push(state);
    },
  };
  const stop = new AbortController();
  const checks = [
    { name: 'ping', problem: () => undefined },
    { name: 'syncloop', problem: () => problem },
  ];
  const fed = feedWatchdog({ manager, watchdogMs: 10_000, checks, clock, logger }, stop.signal);
  await clock.advance(20_000);
  assert.deepEqual(reported, Array(5).fill('WATCHDOG=1'));
  problem = 'it stands still';
  await clock.advance(20_000);
  assert.equal(reported.length, 5);
  assert.match(JSON.stringify([...records]), /it stands still/);
  problem = undefined;
  refuses = true;
  await clock.advance(5_000);
  refuses = false;
  await clock.advance(5_000);
  assert.equal(reported.length, 6, 'continues after a failed notification');
  stop.abort();
  await clock.advance(1);
  await fed;
});

test('parses the open file limits of /proc/self/limits', () => {
  const text = (soft: string, hard: string) =>
    `Limit   Soft Limit  Hard Limit  Units\nMax open files            ${soft}   ${hard}   files\n`;
  assert.deepEqual(openFileLimits(text('1024', '1048576')), { soft: 1_024, hard: 1_048_576 });
  assert.equal(openFileLimits(text('1024', 'unlimited')).hard, Number.MAX_SAFE_INTEGER);
});
