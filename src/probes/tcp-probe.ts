import { connect } from 'node:net';
import { type Clock, joinHostPort, onAbort } from '../lib/index.ts';
import { dialFailure } from './dial-failure.ts';
import { failure, type ProbeAnswer, type ProbeQuestion, type TcpAction } from './question.ts';

/** Whether the port takes a connection. */
export function askTcp(
  { action: { host, port }, timeoutMs }: ProbeQuestion<TcpAction>,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const end = () => {
      timer.cancel();
      link[Symbol.dispose]();
      socket.destroy();
    };
    const answer = (given: ProbeAnswer) => {
      end();
      resolve(given);
    };
    const timer = clock.timer(timeoutMs, () =>
      answer(failure(`dial tcp ${joinHostPort(host, port)}: i/o timeout`)),
    );
    socket.once('connect', () => answer({ is: 'success', output: '' }));
    // For the life of the socket: an error nobody hears ends the process.
    socket.on('error', (error) => answer(failure(dialFailure(host, port, error))));
    const link = onAbort(signal, (reason) => {
      end();
      reject(reason);
    });
  });
}
