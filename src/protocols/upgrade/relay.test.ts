import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { relay } from './relay.ts';

const signal = new AbortController().signal;

/** A stream whose peer accepts writes only when the test requests it. */
function side() {
  const taken: Buffer[] = [];
  let held: (() => void) | undefined;
  let isOpen = false;
  const duplex = new Duplex({
    allowHalfOpen: true,
    read() {},
    write(chunk, _encoding, done) {
      taken.push(chunk);
      if (isOpen) done();
      else held = done;
    },
  });
  const open = () => {
    isOpen = true;
    held?.();
  };
  const text = () => Buffer.concat(taken).toString();
  return { duplex, open, text };
}

/** Destroys the stream like a connection that is reset. */
function breakOff(duplex: Duplex): Promise<void> {
  return new Promise((resolve) => {
    duplex.once('close', resolve);
    duplex.destroy(new Error('reset'));
  });
}

describe('relay of bytes between two streams', () => {
  it('waits until a slow stream has accepted the last bytes of the other stream', async () => {
    const clock = new VirtualClock();
    const [runtime, client] = [side(), side()];
    const over = relay(client.duplex, runtime.duplex, { clock, idleMs: 0 }, signal);
    runtime.duplex.push('one ');
    runtime.duplex.push('two ');
    runtime.duplex.push('three');
    runtime.duplex.push(null);
    await once(runtime.duplex, 'end');
    await clock.advance(60_000);
    assert.equal(client.duplex.destroyed, false);
    client.open();
    await once(client.duplex, 'finish');
    assert.equal(client.text(), 'one two three');
    await clock.advance(11_000);
    await over;
    assert.equal(client.duplex.destroyed && runtime.duplex.destroyed, true);
  });

  it('relays the remaining bytes of a stream that broke, and then closes the other stream', async () => {
    const clock = new VirtualClock();
    const [runtime, client] = [side(), side()];
    const over = relay(client.duplex, runtime.duplex, { clock, idleMs: 0 }, signal);
    runtime.duplex.push('first ');
    runtime.duplex.push('last');
    await clock.advance(0);
    await breakOff(runtime.duplex);
    assert.equal(client.duplex.destroyed, false);
    client.open();
    await over;
    assert.equal(client.text(), 'first last');
    assert.equal(client.duplex.destroyed, true);
  });

  it('when a stream broke and the other stream accepts no bytes, closes the other stream soon', async () => {
    const clock = new VirtualClock();
    const [runtime, client] = [side(), side()];
    const over = relay(client.duplex, runtime.duplex, { clock, idleMs: 0 }, signal);
    runtime.duplex.push('words');
    await clock.advance(0);
    await breakOff(runtime.duplex);
    await clock.advance(11_000);
    await over;
    assert.equal(client.duplex.destroyed, true);
  });
});
