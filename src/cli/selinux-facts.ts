import type { SelinuxFacts } from '../volumes/index.ts';

/** Text of a file, or undefined when it is not there. */
type ReadText = (path: string) => Promise<string | undefined>;

const usualFileContext = 'system_u:object_r:container_file_t:s0';
const usualPolicy = 'targeted';

/** Undefined on a machine without SELinux. */
export async function readSelinuxFacts(read: ReadText): Promise<SelinuxFacts | undefined> {
  // The file system of SELinux is there only where it is on, whether it enforces or not.
  if ((await read('/sys/fs/selinux/enforce')) === undefined) return undefined;
  const policy = valueIn((await read('/etc/selinux/config')) ?? '', 'SELINUXTYPE') ?? usualPolicy;
  const contexts = /^[\w.-]+$/.test(policy)
    ? await read(`/etc/selinux/${policy}/contexts/lxc_contexts`)
    : undefined;
  return { fileContext: valueIn(contexts ?? '', 'file') ?? usualFileContext };
}

function valueIn(text: string, name: string): string | undefined {
  for (const line of text.split('\n')) {
    const [key = '', ...rest] = line.split('=');
    const value = rest.join('=').trim().replace(/^"/, '').replace(/"$/, '');
    if (key.trim() === name && rest.length > 0 && !value.includes('"'))
      return value === '' ? undefined : value;
  }
  return undefined;
}
