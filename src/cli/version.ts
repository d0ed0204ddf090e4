import { readFile } from 'node:fs/promises';
import { type Command, type CommandContext, exitCodes, outputFlag, readFlags } from './command.ts';

/** The release of Kubernetes that this kubelet implements. */
export const kubernetesVersion = 'v1.36.4';

const usage = `usage: kubeling version [-o text|json]

Prints the versions of kubeling, of the Kubernetes release it implements, and of Node.js.`;

async function run(context: CommandContext): Promise<number> {
  const { output } = readFlags({ output: outputFlag }, context.argv);
  const facts = {
    version: await ownVersion(),
    kubernetes: kubernetesVersion,
    node: process.versions.node,
    platform: `${process.platform}/${process.arch}`,
  };
  context.stdout.write(
    output === 'json'
      ? `${JSON.stringify(facts)}\n`
      : `kubeling ${facts.version} (Kubernetes ${facts.kubernetes}, Node.js ${facts.node}, ${facts.platform})\n`,
  );
  return exitCodes.done;
}

/** Returns the version of kubeling, which only package.json contains. */
export async function ownVersion(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

export const command: Command = { name: 'version', summary: 'print the version', usage, run };
