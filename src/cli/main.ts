import { describeError, KubelingError, kindOf, nearestName, printableLines } from '../lib/index.ts';
import { type Command, type CommandContext, exitCodes } from './command.ts';

/** Runs the command of the arguments and returns the exit code. Never rejects. */
export async function runCli(
  context: CommandContext,
  table: readonly CommandEntry[] = commandTable,
): Promise<number> {
  const [word, ...argv] = context.argv;
  if (word === undefined || word === '-h' || word === '--help') return printHelp(context, table);
  if (word === '--version') return await dispatch('version', { ...context, argv }, table);
  if (word === 'help') return await printHelpOn(argv[0], context, table);
  return await dispatch(word, { ...context, argv }, table);
}

async function dispatch(
  name: string,
  context: CommandContext,
  table: readonly CommandEntry[],
): Promise<number> {
  try {
    const command = await find(name, table).load();
    if (isHelpRequest(context.argv)) return printUsage(context, command);
    return await command.run(context);
  } catch (error) {
    return report(name, error, context);
  }
}

function find(name: string, table: readonly CommandEntry[]): CommandEntry {
  const entry = table.find((candidate) => candidate.name === name);
  if (entry !== undefined) return entry;
  const meant = nearestName(
    name,
    table.map((candidate) => candidate.name),
  );
  const advice = meant === undefined ? 'kubeling --help lists the commands' : `did you mean "${meant}"?`;
  throw new KubelingError('CLI_UNKNOWN_COMMAND', `There is no command ${JSON.stringify(name)}: ${advice}`);
}

/** Whether help is requested; arguments after "--" belong to the container's command. */
function isHelpRequest(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).some((word) => word === '-h' || word === '--help');
}

function report(name: string, error: unknown, context: CommandContext): number {
  const kind = kindOf(error);
  if (kind === 'Cancelled' && context.signal.aborted) return exitCodes.interrupted;
  if (kind === 'Bug') {
    const stack = error instanceof Error && error.stack !== undefined ? error.stack : describeError(error);
    context.stderr.write(`kubeling ${name}: this is a bug in kubeling: ${stack}\n`);
    return exitCodes.failed;
  }
  const unknown = error instanceof KubelingError && error.code === 'CLI_UNKNOWN_COMMAND';
  context.stderr.write(`kubeling${unknown ? '' : ` ${name}`}: ${printableLines(describeError(error))}\n`);
  return exitCodes.failed;
}

async function printHelpOn(
  name: string | undefined,
  context: CommandContext,
  table: readonly CommandEntry[],
): Promise<number> {
  if (name === undefined || name === 'help') return printHelp(context, table);
  try {
    return printUsage(context, await find(name, table).load());
  } catch (error) {
    return report(name, error, context);
  }
}

function printUsage(context: CommandContext, command: Command): number {
  context.stdout.write(`${command.usage}\n`);
  return exitCodes.done;
}

function printHelp(context: CommandContext, table: readonly CommandEntry[]): number {
  const width = Math.max(...table.map((entry) => entry.name.length));
  const list = table.map((entry) => `  ${entry.name.padEnd(width)}  ${entry.summary}`);
  context.stdout.write(
    `${[
      'kubeling is a kubelet: it runs the pods of one Kubernetes node, in a cluster or alone.',
      '',
      'usage: kubeling <command> [flags]',
      '',
      ...list,
      '',
      'kubeling help <command> shows the help of a command.',
      'Exit codes: 0 done, 1 wrong usage or failed, 130 interrupted.',
    ].join('\n')}\n`,
  );
  return exitCodes.done;
}

/** An entry of the list of commands; the module is loaded on first use. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command>;
}

export const commandTable: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'run kubeling on this machine without a cluster',
    load: async () => (await import('./up/up.ts')).command,
  },
  {
    name: 'down',
    summary: 'stop what "up" started and clean up after it',
    load: async () => (await import('./down.ts')).command,
  },
  {
    name: 'run',
    summary: 'run as the kubelet of a node, with the flags of the Go kubelet',
    load: async () => (await import('./run/run.ts')).command,
  },
  {
    name: 'status',
    summary: 'show what kubeling runs on this machine',
    load: async () => (await import('./status.ts')).command,
  },
  {
    name: 'context',
    summary: 'add the API of "up" to your kubeconfig',
    load: async () => (await import('./context/context.ts')).command,
  },
  {
    name: 'explain',
    summary: 'explain a pod: why it runs or does not run',
    load: async () => (await import('./explain.ts')).command,
  },
  {
    name: 'logs',
    summary: 'show the log of a container, and follow it with -f',
    load: async () => (await import('./logs/index.ts')).command,
  },
  {
    name: 'exec',
    summary: 'run a command in a container, or a shell with -it',
    load: async () => (await import('./streams/exec.ts')).command,
  },
  {
    name: 'attach',
    summary: 'attach to the main process of a container',
    load: async () => (await import('./streams/attach.ts')).command,
  },
  {
    name: 'port-forward',
    summary: 'forward local ports to a pod',
    load: async () => (await import('./streams/port-forward.ts')).command,
  },
  {
    name: 'doctor',
    summary: 'check whether this machine can be a node, and what to do about it',
    load: async () => (await import('./doctor/index.ts')).command,
  },
  {
    name: 'version',
    summary: 'print the version',
    load: async () => (await import('./version.ts')).command,
  },
];
