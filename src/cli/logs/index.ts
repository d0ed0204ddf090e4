import {
  allOrAbort,
  boolFlag,
  type Clock,
  cancelledError,
  durationFlag,
  type FlagTable,
  type FlagValues,
  formatFlagHelp,
  intFlag,
  KubelingError,
  LinkedController,
  onAbort,
  stringFlag,
} from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { parseLogTime } from '../../runtime/index.ts';
import { type Command, type CommandContext, exitCodes } from '../command.ts';
import { kubeletFlags } from '../kubelet-port.ts';
import { chooseContainer, choosePod, parseCommandLine } from '../streams/choose-pod.ts';
import { findKubelet } from '../streams/kubelet-client.ts';
import { stdioOf } from '../streams/process-command.ts';
import {
  ContainerFollower,
  containersOf,
  type FindKubelet,
  type LogRequest,
  type LogTarget,
  logQueryOf,
  openLog,
} from './follow-container.ts';
import { type LogOutput, lineOutput, logOutput } from './output.ts';

const flags = {
  follow: {
    kind: boolFlag,
    short: 'f',
    help: 'Follow the log through restarts of the container, until its pod is deleted.',
  },
  previous: { kind: boolFlag, short: 'p', help: 'The log of the previous instance of the container.' },
  tail: { kind: intFlag(-1), help: 'Only this many lines from the end; -1 for all.', default: '-1' },
  since: { kind: durationFlag, help: 'Only lines since a duration ago, such as 10s, 5m or 3h.' },
  'since-time': { kind: stringFlag, help: 'Only lines since this time, such as 2026-01-31T10:00:00Z.' },
  timestamps: { kind: boolFlag, help: 'Prefix each line with its time.' },
  'limit-bytes': { kind: intFlag(0), help: 'Stop after this many bytes; 0 for no limit.', default: '0' },
  container: {
    kind: stringFlag,
    short: 'c',
    help: "The container; by default the one of the pod's default-container annotation, or its first.",
  },
  'all-containers': { kind: boolFlag, help: 'Logs of all containers of the pod.' },
  prefix: { kind: boolFlag, help: 'Prefix each line with the pod and the container.' },
  namespace: { kind: stringFlag, short: 'n', help: 'The namespace of the pod; any by default.' },
  ...kubeletFlags,
} satisfies FlagTable;

const usage = `usage: kubeling logs [-f] [-p] [-c CONTAINER] POD [flags]

Shows the log of a container; the pod is given by its name, name_namespace or UID. Rotated logs are included as long as
they exist.

${formatFlagHelp(flags).trimEnd()}`;

type Values = FlagValues<typeof flags>;

async function run(context: CommandContext): Promise<number> {
  const { values, positionals } = parseCommandLine(flags, context.argv);
  const [key, ...surplus] = positionals;
  if (key === undefined || surplus.length > 0)
    throw new KubelingError('CLI_USAGE', 'Name exactly one pod: kubeling logs POD');
  const request = logRequestOf(values, context.clock);
  const output = logOutput(stdioOf(context));
  using stop = new LinkedController(context.signal);
  using _closed = onAbort(output.closed, () => stop.abort(cancelledError('The output is closed')));
  try {
    const find = () => findKubelet(values, context);
    const pod = choosePod(await (await find()).pods(stop.signal), key, values.namespace);
    return await print({ values, request, context, find, output, pod }, stop.signal);
  } catch (error) {
    if (!output.closed.aborted || context.signal.aborted) throw error;
  }
  return exitCodes.done;
}

interface Printing {
  readonly values: Values;
  readonly request: LogRequest;
  readonly context: CommandContext;
  readonly find: FindKubelet;
  readonly output: LogOutput;
  readonly pod: Pod;
}

/** Prints the logs and returns the exit code. */
async function print(printing: Printing, signal: AbortSignal): Promise<number> {
  const { values, context, pod } = printing;
  if (values['all-containers'] === true) {
    const names = containersOf(pod).map(({ name }) => name);
    const codes: number[] = [];
    // With --follow the logs are printed concurrently, otherwise one after the other.
    if (values.follow === true) {
      const all = (inner: AbortSignal) =>
        Promise.all(names.map((name) => tryContainer(printing, name, inner)));
      codes.push(...(await allOrAbort(all, signal)));
    } else for (const name of names) codes.push(await tryContainer(printing, name, signal));
    return Math.max(exitCodes.done, ...codes);
  }
  const { name, notice } = chooseContainer(pod, values.container);
  if (notice !== undefined) context.stderr.write(`${notice}\n`);
  await printContainer(printing, name, signal);
  return exitCodes.done;
}

/**
 * Prints the log of one container. If there is none because the container waits to be started,
 * reports that and returns, so that the other logs are printed.
 */
async function tryContainer(printing: Printing, container: string, signal: AbortSignal): Promise<number> {
  try {
    await printContainer(printing, container, signal);
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof KubelingError && error.code === 'LOGS_UNAVAILABLE')) throw error;
    printing.context.stderr.write(`kubeling logs: ${container}: ${error.message}\n`);
    return exitCodes.failed;
  }
}

async function printContainer(printing: Printing, container: string, signal: AbortSignal): Promise<void> {
  const { values, request, find, pod, context } = printing;
  const isMixed = values.prefix === true || values['all-containers'] === true;
  const prefix = values.prefix === true ? `[pod/${pod.metadata.name}/${container}] ` : '';
  const lines = isMixed ? lineOutput(printing.output, prefix) : undefined;
  const output = lines ?? printing.output;
  const target = { pod, container };
  const complain = (text: string) => context.stderr.write(`kubeling logs: ${text}\n`);
  if (values.follow === true && values.previous !== true)
    await new ContainerFollower({ clock: context.clock, find, output, warn: complain }, target, request).run(
      signal,
    );
  else
    await printOnce(
      find,
      target,
      { ...logQueryOf(request), previous: String(values.previous === true) },
      output,
      signal,
    );
  await lines?.flush(signal);
}

async function printOnce(
  find: FindKubelet,
  target: LogTarget,
  query: Parameters<typeof openLog>[2],
  output: LogOutput,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of await openLog(find, target, query, signal)) await output.write(chunk, signal);
}

/** Parses the log options; reports all conflicting flags in one error. */
function logRequestOf(values: Values, clock: Clock): LogRequest {
  const {
    tail = -1,
    since = 0,
    timestamps = false,
    'since-time': sinceTime,
    'limit-bytes': limit = 0,
  } = values;
  const problems = [
    ...(since !== 0 && sinceTime !== undefined ? ['only one of --since and --since-time may be given'] : []),
    ...(since < 0 ? ['--since must not be negative'] : []),
    ...(sinceTime !== undefined && parseLogTime(sinceTime) === undefined
      ? [
          `--since-time must be a time such as 2026-01-31T10:00:00Z: current value is ${JSON.stringify(sinceTime)}`,
        ]
      : []),
    ...(values.container !== undefined && values['all-containers'] === true
      ? ['only one of --container and --all-containers may be given']
      : []),
  ];
  if (problems.length > 0) throw new KubelingError('CLI_USAGE', `Cannot show logs: ${problems.join('; ')}`);
  return {
    tailLines: tail < 0 ? undefined : tail,
    sinceTime: since > 0 ? new Date(clock.now() - since).toISOString() : sinceTime,
    timestamps: timestamps ? 'shown' : 'hidden',
    limitBytes: limit === 0 ? undefined : limit,
  };
}

export const command: Command = {
  name: 'logs',
  summary: 'show the log of a container, and follow it with -f',
  usage,
  run,
};
