import type { Reply } from './reply.ts';

/** Few ask for it, so what writes it is loaded on first use. */
export async function yamlReply(status: number, value: unknown): Promise<Reply> {
  const { stringify } = await import('yaml');
  // As others read it, where a word such as "yes" in a string must be in quotes.
  const body = stringify(value, { aliasDuplicateObjects: false, version: '1.1', lineWidth: 0 });
  return { status, headers: { 'Content-Type': 'application/yaml' }, body };
}
