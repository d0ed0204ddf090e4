import { type FlagTable, formatFlagHelp, stringFlag } from '../../lib/index.ts';
import { type Command, type CommandContext, exitCodes, outputFlag, readFlags } from '../command.ts';
import { dataDirFlag, defaultDataDirectory } from '../data-directory/data-directory.ts';
import { examine } from './check.ts';
import { allChecks } from './checks/index.ts';
import { realMachine } from './real-machine.ts';
import { formatJson, formatText, summarize } from './report.ts';

const flags = {
  'data-dir': dataDirFlag,
  'runtime-endpoint': {
    kind: stringFlag,
    help: 'The CRI socket to check, such as unix:///run/containerd/containerd.sock; by default the usual sockets.',
  },
  output: outputFlag,
} satisfies FlagTable;

const usage = `usage: kubeling doctor [flags]

Checks whether this machine can run pods, and changes nothing. For each finding it prints the consequence and what to do.
A note is a fact with a consequence, a warning is a likely problem, after a failure pods cannot run.
Exits with 1 when there is a failure.

${formatFlagHelp(flags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  const endpoint = values['runtime-endpoint'];
  const target = {
    machine: realMachine(context.clock, context.random, context.env),
    dataDirectory: values['data-dir'] ?? defaultDataDirectory,
    ...(endpoint === undefined ? {} : { runtimeEndpoint: endpoint }),
  };
  const findings = await examine(allChecks, target, context.clock, context.signal);
  context.stdout.write(values.output === 'json' ? formatJson(findings) : formatText(findings));
  return summarize(findings).fail > 0 ? exitCodes.failed : exitCodes.done;
}

export const command: Command = {
  name: 'doctor',
  summary: 'check whether this machine can be a node, and what to do about it',
  usage,
  run,
};
