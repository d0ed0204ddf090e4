import { codeOnly } from './source-text.ts';

/** A place in the source that starts a program. */
export interface Start {
  /** The name of the program without its directory; undefined if the source computes it. */
  readonly program: string | undefined;
  /** The program argument as written in the source. */
  readonly written: string;
}

const startFunctions = ['exec', 'execFile', 'execFileSync', 'execSync', 'spawn', 'spawnSync'];
const libraryFunctions = ['runCommand', 'runChecked'];

/**
 * Returns the places of a file that start a program: calls of functions imported from
 * `node:child_process` or promisified, of `runCommand` and `runChecked`, and of the given wrappers,
 * as `name` or as `.name` for a method. A use of such a function that is not a call counts as well,
 * because the function may be called elsewhere. `process.execPath` and `fork`, which start the
 * running Node.js, are excluded.
 */
export function programStarts(source: string, wrappers: readonly string[] = []): Start[] {
  const code = codeOnly(source);
  const functions = [...namesFromChildProcess(source, code), ...libraryFunctions];
  const promisified = functions.flatMap((name) => promisifiedNames(code, name));
  const ours = [...wrappers, ...promisified];
  const uses = [
    ...functions.flatMap((name) => usesOf(source, code, name)),
    ...ours.flatMap((name) => usesOf(source, code, name).filter(({ written }) => written !== name)),
  ];
  return uses.filter(({ written }) => written !== 'process.execPath');
}

function namesFromChildProcess(source: string, code: string): string[] {
  const names: string[] = [];
  for (const match of code.matchAll(/\b(?:import|export)\s+(?!type\b)([^;'"]*?)\bfrom\s*(?=['"])/g)) {
    const from = /^['"](.*?)['"]/.exec(source.slice(match.index + match[0].length))?.[1] ?? '';
    if (!/^(?:node:)?child_process$/.test(from)) continue;
    const list = /^\{([^}]*)\}\s*$/.exec(match[1] ?? '')?.[1];
    if (list === undefined) throw new Error('import the functions of node:child_process by name');
    for (const item of list.split(',').map((text) => text.trim())) {
      const [, original, own] = /^(?!type\b)(\w+)(?:\s+as\s+(\w+))?$/.exec(item) ?? [];
      if (original !== undefined && startFunctions.includes(original)) names.push(own ?? original);
    }
  }
  refuseOtherLoads(source, code);
  return names;
}

function refuseOtherLoads(source: string, code: string): void {
  for (const match of code.matchAll(/\b(?:import|require|getBuiltinModule)\s*\(\s*(?=['"`])/g)) {
    const from = source.slice(match.index + match[0].length + 1);
    if (/^(?:node:)?child_process\b/.test(from))
      throw new Error('node:child_process must be loaded with an import statement');
  }
}

function promisifiedNames(code: string, name: string): string[] {
  const definition = new RegExp(`\\b(?:const|let)\\s+(\\w+)\\s*=\\s*promisify\\(${name}\\)(?!\\()`, 'g');
  return [...code.matchAll(definition)].flatMap((match) => match[1] ?? []);
}

function usesOf(source: string, code: string, name: string): Start[] {
  const escaped = name.replaceAll('.', '\\.');
  const pattern = new RegExp(
    name.startsWith('.') ? `${escaped}(?=\\()` : `(?<![\\w.#$])${escaped}(?![\\w$])`,
    'g',
  );
  return [...code.matchAll(pattern)].flatMap((match): Start[] => {
    const [before, end] = [code.slice(0, match.index), match.index + match[0].length];
    const isPromisified = /\bpromisify\($/.test(before);
    if (isDeclaration(before, code.slice(end))) return [];
    if (isPromisified && code.startsWith(')(', end)) return [startOf(firstArgument(source, code, end + 1))];
    if (isPromisified && /\b(?:const|let)\s+\w+\s*=\s*promisify\($/.test(before)) return [];
    if (code[end] !== '(') return [{ program: undefined, written: name }];
    return [startOf(firstArgument(source, code, end))];
  });
}

/**
 * The name occurs in a list of imports or exports, as a key of an object or type, or as the name of
 * a function or method, so it is no call.
 */
function isDeclaration(before: string, after: string): boolean {
  if (/\bfunction\s*\*?\s*$/.test(before) || /^\(\s*\w+\??:/.test(after)) return true;
  if (/^\s*\??:(?!:)/.test(after)) return true;
  return /\b(?:import|export)\s+(?:type\s+)?\{[^}]*$/.test(before);
}

function firstArgument(source: string, code: string, open: number): string {
  let depth = 0;
  let at = open;
  for (; at < code.length; at++) {
    const character = code[at] ?? '';
    if ('([{'.includes(character)) depth++;
    else if (')]}'.includes(character)) depth--;
    if (depth === 0 || (depth === 1 && character === ',')) break;
  }
  return source.slice(open + 1, at).trim();
}

/** The program is the argument itself, the `file` of an object, or the first element of a list. */
function startOf(argument: string): Start {
  const inObject = /^\{\s*file(?::\s*([^,}]*))?/.exec(argument);
  const inList = /^\[\s*([^,\]]*)/.exec(argument)?.[1];
  const text = inObject === null ? (inList ?? argument) : (inObject[1] ?? 'file');
  const written = text.replace(/\s+/g, ' ').trim();
  const literal = /^(['"`])([^'"`$\s]+)\1$/.exec(written)?.[2];
  return { program: literal?.replace(/^.*\//, ''), written };
}
