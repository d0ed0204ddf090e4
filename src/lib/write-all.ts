import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { LinkedController } from './abort.ts';
import { KubelingError } from './errors.ts';

/**
 * Writes data to a stream and waits until the stream has drained. Rejects when the stream is closed
 * or the signal aborted before that.
 */
export async function writeAll(to: Writable, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  if (!to.writable) throw brokenStream();
  if (to.write(bytes)) return;
  using waiting = new LinkedController(signal);
  const closed = () => waiting.abort(brokenStream());
  to.once('close', closed);
  try {
    await once(to, 'drain', { signal: waiting.signal });
  } catch (error) {
    throw waiting.signal.aborted ? waiting.signal.reason : error;
  } finally {
    to.off('close', closed);
  }
}

function brokenStream(): KubelingError {
  return new KubelingError('STREAM_BROKEN', 'The stream was closed by the peer');
}
