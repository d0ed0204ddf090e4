import { commandNamed } from './commands.ts';
import { expandText, expandWords } from './expand.ts';
import {
  type Command,
  type CommandCall,
  ExitRequest,
  LoopRequest,
  type Running,
  type Scope,
  type Streams,
} from './session.ts';
import type { Node, Redirect } from './syntax.ts';

export interface InterpreterOptions extends Pick<CommandCall, 'files' | 'host' | 'shell'> {
  /** Called between commands; handles pending signals. */
  readonly afterCommand: (scope: Scope, streams: Streams) => Running;
  /** Starts a background job and returns its process ID. */
  readonly startJob: (run: Running) => number;
}

type Simple = Extract<Node, { kind: 'simple' }>;

/**
 * The number of commands after which a millisecond passes, so that a loop without waits does not
 * stop virtual time.
 */
const commandsPerMs = 100;

/** Executes a shell script command by command. The generator yields at each wait. */
export class Interpreter {
  readonly #options: InterpreterOptions;
  #commands = 0;

  constructor(options: InterpreterOptions) {
    this.#options = options;
  }

  *run(node: Node, scope: Scope, streams: Streams): Running {
    switch (node.kind) {
      case 'simple':
        return yield* this.#checked(this.#simple(node, scope, streams), scope);
      case 'list':
        return yield* this.#list(node, scope, streams);
      case 'and':
      case 'or':
        return yield* this.#andOr(node, scope, streams);
      case 'not':
        scope.status = (yield* this.#unchecked(node.node, scope, streams)) === 0 ? 1 : 0;
        return scope.status;
      case 'if':
        return yield* this.#if(node, scope, streams);
      case 'for':
        return yield* this.#for(node, scope, streams);
      case 'while':
      case 'until':
        return yield* this.#while(node, scope, streams);
      case 'group':
        return yield* this.#redirected(node, scope, streams, scope);
      case 'subshell':
        return yield* this.#checked(this.#subshell(node, scope, streams), scope);
    }
  }

  /** Runs one command given by its expanded words. */
  *command(
    words: readonly string[],
    scope: Scope,
    streams: Streams,
    find: (name: string) => Command | undefined,
    env: ReadonlyMap<string, string> = scope.environment(),
  ): Running {
    const [name = '', ...args] = words;
    const command = find(name);
    if (command === undefined) {
      streams.write('stderr', `${scope.name}: ${name}: not found\n`);
      return 127;
    }
    const { files, host, shell } = this.#options;
    const result = command({ args, scope, streams, env, files, host, shell });
    return typeof result === 'number' ? result : yield* result;
  }

  *#list(node: Extract<Node, { kind: 'list' }>, scope: Scope, streams: Streams): Running {
    for (const item of node.items) {
      if (item.background) {
        const inner = scope.copy();
        scope.lastJob = this.#options.startJob(this.run(item.node, inner, streams));
        scope.status = 0;
      } else yield* this.run(item.node, scope, streams);
    }
    return scope.status;
  }

  *#andOr(node: Extract<Node, { kind: 'and' | 'or' }>, scope: Scope, streams: Streams): Running {
    const left = yield* this.#unchecked(node.left, scope, streams);
    const goesOn = node.kind === 'and' ? left === 0 : left !== 0;
    return goesOn ? yield* this.run(node.right, scope, streams) : left;
  }

  *#if(node: Extract<Node, { kind: 'if' }>, scope: Scope, streams: Streams): Running {
    if ((yield* this.#unchecked(node.test, scope, streams)) === 0) {
      return yield* this.run(node.body, scope, streams);
    }
    scope.status = 0;
    return node.otherwise === undefined ? 0 : yield* this.run(node.otherwise, scope, streams);
  }

  *#for(node: Extract<Node, { kind: 'for' }>, scope: Scope, streams: Streams): Running {
    for (const value of expandWords(node.words, scope)) {
      scope.set(node.name, value);
      if ((yield* this.#round(node.body, scope, streams)) === 'break') break;
    }
    return scope.status;
  }

  *#while(node: Extract<Node, { kind: 'while' | 'until' }>, scope: Scope, streams: Streams): Running {
    const expected = node.kind === 'while';
    while (((yield* this.#unchecked(node.test, scope, streams)) === 0) === expected) {
      if ((yield* this.#round(node.body, scope, streams)) === 'break') break;
    }
    scope.status = 0;
    return 0;
  }

  *#round(body: Node, scope: Scope, streams: Streams) {
    yield* this.#spendTime();
    try {
      yield* this.run(body, scope, streams);
    } catch (error) {
      if (!(error instanceof LoopRequest)) throw error;
      return error.kind;
    }
    return 'continue';
  }

  /** Runs a condition: its failure does not end the script, even under `set -e`. */
  *#unchecked(node: Node, scope: Scope, streams: Streams): Running {
    const before = scope.exitOnError;
    scope.exitOnError = false;
    try {
      return yield* this.run(node, scope, streams);
    } finally {
      scope.exitOnError = before;
    }
  }

  *#checked(running: Running, scope: Scope): Running {
    const status = yield* running;
    scope.status = status;
    if (status !== 0 && scope.exitOnError) throw new ExitRequest(status);
    return status;
  }

  *#subshell(node: Extract<Node, { kind: 'group' | 'subshell' }>, scope: Scope, streams: Streams): Running {
    try {
      return yield* this.#redirected(node, scope, streams, scope.copy());
    } catch (error) {
      if (error instanceof ExitRequest) return error.code;
      throw error;
    }
  }

  *#redirected(
    node: Extract<Node, { kind: 'group' | 'subshell' }>,
    scope: Scope,
    streams: Streams,
    inner: Scope,
  ): Running {
    const redirected = this.#redirect(node.redirects, scope, streams);
    return redirected === undefined ? 1 : yield* this.run(node.body, inner, redirected);
  }

  *#simple(node: Simple, scope: Scope, streams: Streams): Running {
    yield* this.#spendTime();
    const words = expandWords(node.words, scope);
    const redirected = this.#redirect(node.redirects, scope, streams);
    if (redirected === undefined) return 1;
    let status = 0;
    if (words.length === 0) {
      for (const { name, word } of node.assignments) scope.set(name, expandText(word, scope));
    } else {
      const env = this.#environment(node, scope);
      status = yield* this.command(words, scope, redirected, commandNamed, env);
    }
    scope.status = status;
    yield* this.#options.afterCommand(scope, streams);
    return status;
  }

  *#spendTime(): Running {
    if (++this.#commands % commandsPerMs === 0) yield { kind: 'sleep', ms: 1 };
    return 0;
  }

  #environment(node: Simple, scope: Scope): ReadonlyMap<string, string> {
    if (node.assignments.length === 0) return scope.environment();
    const env = new Map(scope.environment());
    for (const { name, word } of node.assignments) env.set(name, expandText(word, scope));
    return env;
  }

  /**
   * The streams after redirection; undefined when a file cannot be opened, which is reported on
   * stderr.
   */
  #redirect(redirects: readonly Redirect[], scope: Scope, streams: Streams): Streams | undefined {
    let current = streams;
    for (const redirect of redirects) {
      const next = this.#redirectOne(redirect, scope, current);
      if (next === undefined) return undefined;
      current = next;
    }
    return current;
  }

  #redirectOne(redirect: Redirect, scope: Scope, streams: Streams): Streams | undefined {
    if (redirect.kind === 'to-fd') {
      const from = redirect.fd === 1 ? 'stdout' : 'stderr';
      const to = redirect.target === 1 ? 'stdout' : 'stderr';
      return { ...streams, write: (stream, text) => streams.write(stream === from ? to : stream, text) };
    }
    const path = expandText(redirect.word, scope);
    const { files } = this.#options;
    if (redirect.kind === 'from-file') {
      const response = files.read(path);
      if (response.ok) return { ...streams, stdin: response.text };
      streams.write('stderr', `${scope.name}: can't open ${path}: no such file\n`);
      return undefined;
    }
    const opened = files.write(path, '', redirect.how);
    if (!opened.ok) {
      streams.write('stderr', `${scope.name}: can't create ${path}: ${opened.why}\n`);
      return undefined;
    }
    const from = redirect.fd === 1 ? 'stdout' : 'stderr';
    return {
      ...streams,
      write(stream, text) {
        if (stream === from) files.write(path, text, 'append');
        else streams.write(stream, text);
      },
    };
  }
}
