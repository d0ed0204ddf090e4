import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { logindShutdowns } from '../../src/node/shutdown/index.ts';
import { scratchFolder } from '../fakes/scratch-folder.ts';
import { eventually } from '../kubeling-node.ts';
import { busSkipReason, openBus } from '../logind/bus.ts';
import { StandInLogind } from '../logind/stand-in.ts';

const clock = realClock();

describe('shutdown signals of systemd-logind', { skip: busSkipReason(), timeout: 60_000 }, () => {
  const end = new AbortController();
  const { signal } = end;
  const parts = new AsyncDisposableStack();
  let directory: string;
  let busPath: string;
  let logind: StandInLogind;

  before(async () => {
    directory = parts.use(scratchFolder('klg-logind-')).path;
    busPath = parts.use(await openBus(directory)).path;
    logind = parts.use(await StandInLogind.open({ busPath, directory, delaySeconds: 5 }));
  });
  after(async () => {
    end.abort(new Error('The test has ended'));
    await parts.disposeAsync();
  });

  const released = () => eventually('no lock to be held', async () => (logind.held === 0 ? true : undefined));

  it('a shutdown is announced and delayed until the inhibitor lock is released', async () => {
    using watch = await logindShutdowns({ clock, busPath, configDirectory: directory }).open(5_000, signal);
    const lock = await watch.hold(signal);
    assert.equal(logind.held, 1);
    const [what, who, , mode] = logind.inhibits.at(-1) ?? [];
    assert.deepEqual([what, who, mode], ['shutdown', 'kubelet', 'delay']);
    const next = watch.next(signal);
    logind.prepareForShutdown(true);
    assert.equal(await next, 'begins');
    assert.equal(await watch.isUnderWay(signal), true);
    lock[Symbol.dispose]();
    await released();
    logind.prepareForShutdown(false);
    assert.equal(await watch.next(signal), 'cancelled');
    assert.equal(await watch.isUnderWay(signal), false);
    using _again = await watch.hold(signal);
    assert.equal(logind.held, 1);
  });

  it('a PrepareForShutdown signal forged by another D-Bus client is ignored', async () => {
    using watch = await logindShutdowns({ clock, busPath, configDirectory: directory }).open(5_000, signal);
    await using impostor = await StandInLogind.open({ busPath, directory, delaySeconds: 5 });
    const next = watch.next(signal);
    for (let number = 0; number < 30; number++) impostor.prepareForShutdown(true, `:1.${number}`);
    assert.equal(await next, 'cancelled');
    logind.prepareForShutdown(true);
    assert.equal(await watch.next(signal), 'begins');
    logind.prepareForShutdown(false);
    assert.equal(await watch.next(signal), 'cancelled');
  });

  it('writes a drop-in file that raises InhibitDelayMaxSec when pods need more time', async () => {
    await released();
    using _watch = await logindShutdowns({ clock, busPath, configDirectory: directory }).open(45_000, signal);
    assert.match(
      await readFile(join(directory, '99-kubelet.conf'), 'utf8'),
      /^\[Login\]\nInhibitDelayMaxSec=45$/m,
    );
  });

  it('logind is reported as unavailable without a D-Bus daemon', async () => {
    const nowhere = logindShutdowns({
      clock,
      busPath: join(directory, 'nothing'),
      configDirectory: directory,
    });
    await assert.rejects(nowhere.open(1_000, signal), { code: 'DBUS_UNAVAILABLE' });
  });

  it('the subscription to logind ends when D-Bus disconnects', async () => {
    const { path: own } = parts.use(scratchFolder('klg-logind-'));
    const bus = await openBus(own);
    await using _other = await StandInLogind.open({ busPath: bus.path, directory: own, delaySeconds: 5 });
    using watch = await logindShutdowns({ clock, busPath: bus.path, configDirectory: own }).open(
      1_000,
      signal,
    );
    const next = watch.next(signal);
    await bus[Symbol.asyncDispose]();
    assert.equal(await next, undefined);
  });
});
