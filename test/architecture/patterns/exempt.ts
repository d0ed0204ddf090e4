/** A regular expression that may take more than linear time, and why this is harmless. */
export interface ExemptPattern {
  readonly file: string;
  /** The pattern as written between the slashes. */
  readonly source: string;
  /** The maximum length of the texts that the expression is matched against. */
  readonly mostCharacters: number;
  readonly why: string;
}

const oomLine = 'only on the first 2,048 characters of a line of the kernel';

export const exemptPatterns: readonly ExemptPattern[] = [
  {
    file: 'src/lib/go-duration.ts',
    source: String.raw`(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)`,
    mostCharacters: 128,
    why: 'durations have at most 128 characters',
  },
  {
    file: 'src/lib/go-duration.ts',
    source: '0+$',
    mostCharacters: 9,
    why: 'the digits of a fraction of a second',
  },
  {
    file: 'src/lib/logging/redact.ts',
    source: String.raw`-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)`,
    mostCharacters: 20_000,
    why: 'matches to the end of the text where there is no end of a key: no start is tried in vain',
  },
  {
    file: 'src/lib/logging/verbosity.ts',
    source: String.raw`\[[^\]/]+\]|[\s\S]`,
    mostCharacters: 1_024,
    why: 'a pattern of --vmodule, from the command line',
  },
  {
    file: 'src/resources/oom/oom-parser.ts',
    source: String.raw`oom-kill:constraint=[^,]*,.*?(?:,oom_memcg=([^,]*)|,(global_oom)),task_memcg=([^,]*),task=(.*),pid=(\d+),uid=`,
    mostCharacters: 2_048,
    why: oomLine,
  },
  {
    file: 'src/resources/oom/oom-parser.ts',
    source: 'Task in (.*) killed as a result of limit of (.*)',
    mostCharacters: 2_048,
    why: oomLine,
  },
  {
    file: 'src/resources/oom/oom-parser.ts',
    source: String.raw`Killed process (\d+) \((.+)\)(?: |,|$)`,
    mostCharacters: 2_048,
    why: oomLine,
  },
  {
    file: 'src/resources/oom/oom-parser.ts',
    source: String.raw`\/(?:[^/]*-)?pod([^/]+?)(?:\.slice)?\/(?:[^/]*-)?([0-9a-f]{64})(?:\.scope)?(?:\/|$)`,
    mostCharacters: 2_048,
    why: oomLine,
  },
  {
    file: 'src/resources/oom/oom-watcher.ts',
    source: String.raw`\/(?:[^/]*-)?pod[^/]+$`,
    mostCharacters: 2_048,
    why: oomLine,
  },
  {
    file: 'src/runtime/images/image-name.ts',
    source: String.raw`\[\^?[^\]]+\]|\\.|[\s\S]`,
    mostCharacters: 1_024,
    why: 'globs of registries have at most 1,024 characters',
  },
  {
    file: 'src/runtime/sandbox/hostname.ts',
    source: '[-.]+$',
    mostCharacters: 63,
    why: 'the first 63 characters of a host name',
  },
];

/**
 * Files that build regular expressions from text at run time, each with the reason why this is
 * safe.
 */
export const patternsOfTexts: ReadonlyMap<string, string> = new Map([
  ['src/lib/logging/verbosity.ts', '--vmodule of the command line, on the paths of source files'],
  ['src/runtime/images/image-name.ts', 'one set of characters, on one character'],
  ['src/server/system-logs/node-log-query.ts', 'only parsed: journalctl does the matching'],
]);
