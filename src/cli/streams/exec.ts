import { formatFlagHelp, KubelingError } from '../../lib/index.ts';
import type { Command, CommandContext } from '../command.ts';
import { chooseContainer, choosePod, parseCommandLine } from './choose-pod.ts';
import { findKubelet } from './kubelet-client.ts';
import { processFlags, runProcess, stdioOf } from './process-command.ts';

const usage = `usage: kubeling exec [-i] [-t] [-c CONTAINER] POD -- COMMAND [ARGUMENT...]

Runs a command in a running container of a pod, given by its name, name_namespace or UID. Exits with the command's exit
code. "kubeling exec -it POD -- sh" runs a shell in the container.

${formatFlagHelp(processFlags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const { values, positionals, afterDashes = [] } = parseCommandLine(processFlags, context.argv);
  const [key, ...surplus] = positionals;
  if (key === undefined || surplus.length > 0 || afterDashes.length === 0) {
    throw new KubelingError(
      'CLI_USAGE',
      'Name one pod, and the command after "--": kubeling exec POD -- COMMAND',
    );
  }
  const kubelet = await findKubelet(values, context);
  const pod = choosePod(await kubelet.pods(context.signal), key, values.namespace);
  const stdin = values.stdin ?? false;
  const hasTerminal = stdin && stdioOf(context).stdin.isTTY === true;
  const tty = (values.tty ?? false) && hasTerminal;
  if (values.tty === true && !tty) {
    context.stderr.write('Unable to use a TTY - input is not a terminal or the right kind of file\n');
  }
  const call = {
    verb: 'exec',
    pod,
    container: chooseContainer(pod, values.container),
    command: afterDashes,
    streams: { stdin, stdout: true, stderr: !tty, tty },
    terminal: tty ? 'raw' : 'as-is',
  } as const;
  return await runProcess(kubelet, call, context);
}

export const command: Command = {
  name: 'exec',
  summary: 'run a command in a container, or a shell with -it',
  usage,
  run,
};
