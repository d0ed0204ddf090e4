import type { Clock } from '../../lib/index.ts';
import type { SocketParts } from '../../local-api/index.ts';
import { handshakeProblem } from '../../protocols/websocket/index.ts';
import { relay } from '../../server/index.ts';
import { serveWebSocket } from '../../server/remote/index.ts';

/** Connections of the API are handled as those of the kubelet are; how long they may be silent is the kubelet's to say. */
export function socketParts(clock: Clock): SocketParts {
  const limits = { clock, idleMs: 0 };
  return {
    relay: (one, other, signal) => relay(one, other, limits, signal),
    handshakeProblem(method, headers) {
      return handshakeProblem({ method, headers })?.message;
    },
    async serveWebSocket({ headers, socket, head }, protocol, work, signal) {
      const call = { request: { headers }, socket, head };
      await serveWebSocket(
        call,
        protocol,
        limits,
        async ({ connection, signal: inner }) => {
          const read = drain(connection.messages());
          const write = work(
            (kind, bytes) =>
              kind === 'text' ? connection.sendText(inner, bytes) : connection.send(inner, bytes),
            inner,
          );
          // A client that closes wants no more of it.
          await Promise.race([write, read]);
        },
        signal,
      );
    },
  };
}

/** What the client says is nothing to us, but only who reads hears pings and its good-bye. */
async function drain(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}
