import { formatFlagHelp, KubelingError } from '../../lib/index.ts';
import type { Command, CommandContext } from '../command.ts';
import { type ChosenContainer, chooseContainer, choosePod, parseCommandLine } from './choose-pod.ts';
import { findKubelet } from './kubelet-client.ts';
import { processFlags, runProcess, stdioOf } from './process-command.ts';

const usage = `usage: kubeling attach [-i] [-t] [-c CONTAINER] POD

Shows the output of the main process of a running container from now on, and with -i passes standard input to it. Without
-t, Ctrl-C ends kubeling only and leaves the process running.

${formatFlagHelp(processFlags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const { values, positionals, afterDashes } = parseCommandLine(processFlags, context.argv);
  const [key, ...surplus] = positionals;
  if (key === undefined || surplus.length > 0 || afterDashes !== undefined) {
    throw new KubelingError('CLI_USAGE', 'Name exactly one pod: kubeling attach POD');
  }
  const kubelet = await findKubelet(values, context);
  const pod = choosePod(await kubelet.pods(context.signal), key, values.namespace);
  const container = chooseContainer(pod, values.container);
  for (const warning of warnings(container, values)) context.stderr.write(`${warning}\n`);
  const stdin = (values.stdin ?? false) && container.stdin;
  const isRaw = (values.tty ?? false) && container.tty && stdin && stdioOf(context).stdin.isTTY === true;
  if (isRaw) context.stderr.write("If you don't see a command prompt, try pressing enter.\n");
  const { tty } = container;
  const call = {
    verb: 'attach',
    pod,
    container,
    command: [],
    streams: { stdin, stdout: true, stderr: !tty, tty },
    terminal: isRaw ? 'raw' : 'as-is',
  } as const;
  return await runProcess(kubelet, call, context);
}

/**
 * Warns if the user requests input or a terminal that the container does not have: both are fixed
 * when the container is created.
 */
function warnings(
  container: ChosenContainer,
  requested: { readonly stdin?: boolean; readonly tty?: boolean },
): readonly string[] {
  return [
    ...(requested.stdin === true && !container.stdin
      ? [`The container ${container.name} accepts no input, because its spec has no "stdin: true"`]
      : []),
    ...(requested.tty === true && !container.tty
      ? [`Unable to use a TTY - container ${container.name} did not allocate one`]
      : []),
  ];
}

export const command: Command = {
  name: 'attach',
  summary: 'attach to the main process of a container',
  usage,
  run,
};
