import { explainNode, explainPod, type NodeStory, type PodStory } from '../journal/index.ts';

import {
  describeError,
  type FlagTable,
  formatFlagHelp,
  KubelingError,
  parseFlags,
  printable,
  withDeadline,
} from '../lib/index.ts';
import { type Command, type CommandContext, exitCodes } from './command.ts';
import { bearerOf, getText, kubeletFlags, type LocalKubelet, locateKubelet } from './kubelet-port.ts';

const flags = kubeletFlags satisfies FlagTable;

const usage = `usage: kubeling explain [POD] [flags]

Explains a pod, by its name, name_namespace or UID: each step of its life with its time, each retry and each failure with
its cause. Without a pod it explains the node and all its pods. Problems with manifests are included.

${formatFlagHelp(flags).trimEnd()}`;

const requestTimeoutMs = 10_000;

interface Flights {
  /** The history of the node; undefined when a pod was named. */
  readonly node?: NodeStory;
  readonly pods: readonly PodStory[];
  readonly problems: readonly string[];
}

async function run(context: CommandContext): Promise<number> {
  const { values, positionals, problems } = parseFlags(flags, context.argv);
  if (problems.length > 0 || positionals.length > 1) {
    const wrong = problems.map((problem) => `${problem.flag} ${problem.message}`);
    throw new KubelingError(
      'CLI_USAGE',
      `Cannot use these arguments: ${[...wrong, ...positionals.slice(1)].join('; ')}`,
    );
  }
  const [pod] = positionals;
  const { node, pods, problems: found } = await fetchFlights(await locateKubelet(values), pod, context);
  if (node !== undefined) context.stdout.write(explainNode(node));
  for (const flight of pods) context.stdout.write(explainPod(flight));
  for (const problem of found) context.stdout.write(`manifest problem: ${printable(String(problem))}\n`);
  if (pods.length > 0 || pod === undefined) return exitCodes.done;
  context.stderr.write(`There is no history of a pod ${JSON.stringify(pod)} here.\n`);
  return exitCodes.failed;
}

async function fetchFlights(
  kubelet: LocalKubelet,
  pod: string | undefined,
  { clock, signal }: CommandContext,
): Promise<Flights> {
  const path = pod === undefined ? '/debug/flight' : `/debug/flight?pod=${encodeURIComponent(pod)}`;
  try {
    const what = 'get a response from the kubelet';
    const headers = await bearerOf(kubelet);
    const url = `http://127.0.0.1:${kubelet.port}${path}`;
    const get = async (inner: AbortSignal) => flightsOf(await getText(url, headers, inner));
    return await withDeadline({ clock, ms: requestTimeoutMs, what }, get, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const message = `Cannot reach the kubelet at 127.0.0.1:${kubelet.port}: ${describeError(cause)}. Is it running?`;
    throw new KubelingError('KUBELET_SILENT', message, { cause });
  }
}

/** Parses the response; it may be from any program that listens on the port. */
function flightsOf(body: string): Flights {
  try {
    const flights: Flights = JSON.parse(body);
    if (Array.isArray(flights.pods) && Array.isArray(flights.problems)) return flights;
  } catch (cause) {
    throw new KubelingError(
      'KUBELET_SILENT',
      'Cannot read the response: the program that listens on the kubelet port is not a kubelet',
      { cause },
    );
  }
  throw new KubelingError(
    'KUBELET_SILENT',
    'Cannot read the response: the program that listens on the kubelet port is not a kubelet',
  );
}

export const command: Command = {
  name: 'explain',
  summary: 'explain a pod: why it runs or does not run',
  usage,
  run,
};
