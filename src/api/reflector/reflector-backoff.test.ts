import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusal, ScriptedServer, syncedRig, unreachable } from '../../../test/fakes/reflector-rig.ts';
import { settle } from '../../../test/fakes/virtual-clock.ts';

/**
 * A fake API server with a client that notifies the reflector when another API client of the node
 * gets a response.
 */
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
  const harness = await syncedRig({}, server);
  await harness.clock.advance(5_000);
  server.refuse = unreachable;
  server.last.fail(unreachable());
  await harness.clock.advance(ms);
  return { ...harness, server };
}

test('ends the back-off immediately when another API client of the node gets a response', async () => {
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

test('backs off again if the server is still unreachable for this client', async () => {
  const { reflector, server, clock } = await awayFor(300_000);
  const before = server.watches.length;
  server.returns();
  await settle();
  await clock.advance(10_000);
  assert.equal(server.watches.length, before + 1);
  assert.equal(server.waiting.size, 1);
  await reflector.stop();
});

test('does not shorten a delay requested by the server', async () => {
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

test('reads all objects again soon if the recovered server reports the resource version as expired', async () => {
  const { reflector, server, clock } = await awayFor(300_000);
  server.refuse = ({ begin }) => (begin === 'at-version' ? refusal(410) : undefined);
  server.returns();
  await settle();
  await clock.advance(1_600);
  assert.equal(server.last.query.begin, 'initial');
  await reflector.stop();
});
