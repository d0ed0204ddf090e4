import { KubelingError } from '../../lib/index.ts';

/** What a resolver is told. */
export interface ResolverConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** Name servers add up, the last line of search domains counts, options of one name replace each other. */
export function parseResolvConf(text: string): ResolverConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  const options: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === 'nameserver') servers.push(serverIn(values));
    // With and without the dot at its end it is the same domain, and must not count twice against limits.
    if (keyword === 'search') searches = values.filter((name) => name !== '.').map(withoutDot);
    if (keyword === 'options') options.push(...values);
  }
  return { servers, searches, options: mergeOptions(options) };
}

function serverIn([address]: readonly string[]): string {
  if (address !== undefined) return address;
  throw new KubelingError(
    'SANDBOX_CONFIG',
    'Encountered error while parsing resolv conf file. Error: nameserver list is empty',
  );
}

function withoutDot(domain: string): string {
  return domain.endsWith('.') ? domain.slice(0, -1) : domain;
}

/** Options such as `ndots:5`: of two with one name the later counts, in the place of the earlier. */
export function mergeOptions(options: readonly string[]): string[] {
  return [...new Map(options.map((option) => [optionName(option), option])).values()];
}

function optionName(option: string): string {
  return option.split(':', 1)[0] ?? option;
}
