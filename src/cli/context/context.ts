import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import {
  boolFlag,
  type FlagTable,
  formatFlagHelp,
  KubelingError,
  readFileIfExists,
  stringFlag,
} from '../../lib/index.ts';
import { type Command, type CommandContext, exitCodes, readFlags } from '../command.ts';
import { dataDirFlag, defaultDataDirectory, findDataDirectory } from '../data-directory/data-directory.ts';
import { mergeKubeconfig, withoutContext } from './merge-kubeconfig.ts';
import { backupOf, changeUserFile } from './user-file.ts';

const flags = {
  'data-dir': dataDirFlag,
  kubeconfig: {
    kind: stringFlag,
    help: 'The kubeconfig to change; by default the first one of $KUBECONFIG, else ~/.kube/config.',
  },
  name: { kind: stringFlag, help: 'The name of the context.', default: 'kubeling' },
  use: { kind: boolFlag, help: 'Make it the current context.', default: 'true' },
  remove: { kind: boolFlag, help: 'Remove the context instead.', default: 'false' },
} satisfies FlagTable;

const usage = `usage: kubeling context [flags]

Adds the cluster, user and context of the running kubeling to your kubeconfig, so that kubectl finds it without further
flags. The rest of the file is unchanged; the entries of an earlier call are replaced. "kubeling up" renews its certificate
in time: run this command again to get the new one. A backup of the file is saved beside it.

${formatFlagHelp(flags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  const path = values.kubeconfig ?? usualKubeconfig(context.env);
  const name = values.name ?? 'kubeling';
  const told =
    values.remove === true
      ? await remove(path, name)
      : await put(path, { name, choose: values.use === false ? 'keep' : 'use' }, values['data-dir']);
  context.stdout.write(`${told}\n`);
  return exitCodes.done;
}

async function put(
  path: string,
  { name, choose }: { readonly name: string; readonly choose: 'use' | 'keep' },
  dataDir: string = defaultDataDirectory,
): Promise<string> {
  const own = await readOwn(dataDir);
  const changed = await changeUserFile(path, (text) => mergeKubeconfig(text, own, { name, choose, path }));
  const current = choose === 'use' ? ', and it is the current context' : '';
  if (changed === 'same') return `The context ${name} was already in ${path}${current}.`;
  return `The context ${name} is in ${path}${current}.${changed === 'changed' ? kept(path) : ''}`;
}

async function remove(path: string, name: string): Promise<string> {
  const changed = await changeUserFile(path, (text) => withoutContext(text, { name, path }));
  return changed === 'changed'
    ? `The context ${name} is no longer in ${path}.${kept(path)}`
    : `There is no context ${name} in ${path}.`;
}

function kept(path: string): string {
  return ` The previous file is saved as ${backupOf(path)}.`;
}

async function readOwn(dataDir: string): Promise<string> {
  const home = await findDataDirectory(dataDir);
  const own = home === undefined ? undefined : await readKubeconfig(home.kubeconfig);
  if (own !== undefined) return own;
  throw new KubelingError(
    'HOME_UNUSABLE',
    `Cannot find a kubeconfig in ${dataDir}: start kubeling there with "kubeling up"`,
  );
}

async function readKubeconfig(path: string): Promise<string | undefined> {
  return await readFileIfExists(path).catch((cause) => {
    throw new KubelingError('FILE_READ', `Cannot read ${path}`, { cause });
  });
}

function usualKubeconfig(env: CommandContext['env']): string {
  const [first = ''] = (env['KUBECONFIG'] ?? '').split(delimiter).filter((part) => part !== '');
  return first === '' ? join(env['HOME'] ?? homedir(), '.kube', 'config') : first;
}

export const command: Command = {
  name: 'context',
  summary: 'add the API of "up" to your kubeconfig',
  usage,
  run,
};
