import {
  boolFlag,
  cancelledError,
  KubelingError,
  LinkedController,
  onAbort,
  stringFlag,
} from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { SpdyConnection } from '../../protocols/spdy/index.ts';
import { type RequestedStreams, remoteCommandProtocol } from '../../server/index.ts';
import { type CommandContext, exitCodes } from '../command.ts';
import { kubeletFlags } from '../kubelet-port.ts';
import type { ChosenContainer } from './choose-pod.ts';
import { whyNotRunning } from './choose-pod.ts';
import type { KubeletClient } from './kubelet-client.ts';
import { runSession } from './run-session.ts';
import { outputClosed, type Stdio } from './stdio.ts';

export const processFlags = {
  stdin: { kind: boolFlag, short: 'i', help: 'Pass standard input to the container.' },
  tty: { kind: boolFlag, short: 't', help: 'Standard input is a terminal; allocate one for the process.' },
  container: {
    kind: stringFlag,
    short: 'c',
    help: "The container; by default the one of the pod's default-container annotation, or its first.",
  },
  namespace: { kind: stringFlag, short: 'n', help: 'The namespace of the pod; any by default.' },
  ...kubeletFlags,
};

export interface ProcessCall {
  readonly verb: 'exec' | 'attach';
  readonly pod: Pod;
  readonly container: ChosenContainer;
  readonly command: readonly string[];
  readonly streams: RequestedStreams;
  readonly terminal: 'raw' | 'as-is';
}

/**
 * Opens the streams, connects them to the standard streams, and returns the exit code of the
 * process.
 */
export async function runProcess(
  kubelet: KubeletClient,
  call: ProcessCall,
  context: CommandContext,
): Promise<number> {
  if (call.container.note !== undefined) context.stderr.write(`${call.container.note}\n`);
  const connection = await open(kubelet, call, context.signal);
  const closed = outputClosed(stdioOf(context));
  using stop = new LinkedController(context.signal);
  using _closed = onAbort(closed, () => stop.abort(cancelledError('The output is closed')));
  try {
    const end = await runSession(
      connection,
      stdioOf(context),
      { ...call, clock: context.clock },
      stop.signal,
    );
    if (end.kind === 'exited') return end.code;
    context.stderr.write(`kubeling ${call.verb}: ${end.message}\n`);
    return exitCodes.failed;
  } catch (error) {
    // The reader has closed the output, as after `| head`.
    if (!closed.aborted || context.signal.aborted) throw error;
    return exitCodes.done;
  }
}

/** The container status explains why the kubelet denied the stream. */
async function open(kubelet: KubeletClient, call: ProcessCall, signal: AbortSignal): Promise<SpdyConnection> {
  try {
    return await kubelet.open(pathOf(call), remoteCommandProtocol, signal);
  } catch (error) {
    const why = whyNotRunning(call.pod, call.container.name);
    if (why === undefined || !(error instanceof KubelingError && error.code === 'STREAM_REFUSED'))
      throw error;
    throw new KubelingError(error.code, `${error.message}; ${why}`, { cause: error.cause });
  }
}

export function stdioOf({ stdio }: CommandContext): Stdio {
  if (stdio === undefined)
    throw new KubelingError('BUG', 'The standard streams are not available to the command');
  return stdio();
}

function pathOf({ verb, pod: { metadata }, container, command, streams }: ProcessCall): string {
  const query = new URLSearchParams(command.map((word) => ['command', word]));
  if (streams.stdin) query.set('input', '1');
  if (streams.stdout) query.set('output', '1');
  if (streams.stderr) query.set('error', '1');
  if (streams.tty) query.set('tty', '1');
  const parts = [metadata.namespace, metadata.name, container.name].map(encodeURIComponent);
  return `/${verb}/${parts.join('/')}?${query}`;
}
