import { Http2Error } from './errors.ts';
import { frameFlag } from './frames.ts';

/** Where the content of a payload begins and ends, without padding and without so many bytes of other fields. */
export function unpadded(
  flags: number,
  bytes: Buffer,
  start: number,
  end: number,
  skipped: number,
): readonly [start: number, end: number] {
  const isPadded = (flags & frameFlag.padded) !== 0;
  const from = start + (isPadded ? 1 : 0) + skipped;
  const to = end - (isPadded ? (bytes[start] ?? 0) : 0);
  if (from > end || to < from) {
    throw new Http2Error(
      'PROTOCOL_ERROR',
      'The other side sent a frame with more padding than it has room for',
    );
  }
  return [from, to];
}
