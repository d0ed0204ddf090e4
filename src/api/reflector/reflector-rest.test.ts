import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusal, ScriptedServer, syncedRig, unreachable } from '../../../test/fakes/reflector-rig.ts';
import { settle } from '../../../test/fakes/virtual-clock.ts';

/** As a client that hears of the answers others get. */
class HearingServer extends ScriptedServer {
  readonly waiting = new Set<() => void>();

  onReturn(told: () => void): Disposable {
    this.waiting.add(told);
    return { [Symbol.dispose]: () => this.waiting.delete(told) };
  }

  returns(): void {
    for (const told of [...this.waiting]) told();
  }
}

async function awayFor(ms: number) {
  const server = new HearingServer();
  const rig = await syncedRig({}, server);
  await rig.clock.advance(5_000);
  server.refuse = unreachable;
  server.last.fail(unreachable());
  await rig.clock.advance(ms);
  return { ...rig, server };
}

test('who waits for a server that was away follows at once when others are answered', async () => {
  const { reflector, server } = await awayFor(300_000);
  const before = server.watches.length;
  server.refuse = () => undefined;
  server.returns();
  await settle();
  assert.equal(server.watches.length, before + 1);
  assert.equal(server.last.query.resourceVersion, '10');
  await reflector.stop();
  assert.equal(server.waiting.size, 0);
});

test('a server that is still away for us is given time again, however often it returns for others', async () => {
  const { reflector, server, clock } = await awayFor(300_000);
  const before = server.watches.length;
  server.returns();
  await settle();
  await clock.advance(10_000);
  assert.equal(server.watches.length, before + 1);
  assert.equal(server.waiting.size, 1);
  await reflector.stop();
});

test('a rest the server asked for is not cut short', async () => {
  const { reflector, server, clock } = await awayFor(60_000);
  server.refuse = () => refusal(429, 'later', 20_000);
  server.returns();
  await settle();
  const before = server.watches.length;
  server.returns();
  await clock.advance(19_000);
  assert.equal(server.watches.length, before);
  await clock.advance(1_000);
  assert.equal(server.watches.length, before + 1);
  await reflector.stop();
});

test('one that is back and has forgotten our version is asked anew soon, not after another long rest', async () => {
  const { reflector, server, clock } = await awayFor(300_000);
  server.refuse = ({ begin }) => (begin === 'at-version' ? refusal(410) : undefined);
  server.returns();
  await settle();
  await clock.advance(1_600);
  assert.equal(server.last.query.begin, 'initial');
  await reflector.stop();
});
