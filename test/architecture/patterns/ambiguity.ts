import { type Automaton, buildAutomaton, type Edge, UnknownPattern } from './automaton.ts';

/**
 * A backtracking matcher takes time linear in the text unless it can match the same text in two
 * ways: by two paths through one loop, that is, a repetition such as `*` (exponential), or by two
 * consecutive loops that match the same characters (polynomial). The search for the start of a
 * match counts as a loop.
 */
export interface Ambiguity {
  readonly degree: 'exponential' | 'polynomial' | 'unknown';
  /** Repeating `pump` after `prefix` makes the matcher slow. */
  readonly prefix: string;
  readonly pump: string;
  readonly why: string;
}

/**
 * Returns the ambiguity of a pattern; undefined if the pattern takes linear time. A pattern that
 * cannot be analyzed counts as ambiguous.
 */
export function findAmbiguity(source: string, flags: string): Ambiguity | undefined {
  try {
    const looped = buildAutomaton(source, flags, { counted: 'looped' });
    const copied = buildAutomaton(source, flags, { counted: 'copied' });
    return new Search(looped).exponential() ?? new Search(copied).polynomial();
  } catch (error) {
    if (!(error instanceof UnknownPattern)) throw error;
    return { degree: 'unknown', prefix: '', pump: '', why: error.message };
  }
}

/**
 * Returns for each loop (repetition) of a regular expression a text that leads to the loop, and a
 * text that passes through it once.
 */
export function loopsOf(source: string, flags: string): readonly { prefix: string; pump: string }[] {
  const automaton = buildAutomaton(source, flags, { counted: 'looped' });
  const search = new Search(automaton);
  return search.loops();
}

class Search {
  readonly #automaton: Automaton;
  readonly #components: readonly number[];
  readonly #fallible: readonly number[];

  constructor(automaton: Automaton) {
    this.#automaton = automaton;
    this.#components = components(automaton, () => true);
    this.#fallible = components(automaton, (state) => !automaton.safe.has(state));
  }

  exponential(): Ambiguity | undefined {
    for (const state of this.#looping(this.#fallible)) {
      const pump = this.#twoWaysAround(state);
      if (pump !== undefined)
        return { degree: 'exponential', prefix: this.#prefixOf(state), pump, why: 'two ways around a loop' };
    }
    return undefined;
  }

  polynomial(): Ambiguity | undefined {
    const firsts = this.#looping(this.#components);
    const seconds = this.#looping(this.#fallible);
    for (const first of firsts)
      for (const second of seconds) {
        if (this.#components[first] === this.#components[second]) continue;
        const pump = this.#overlap(first, second);
        if (pump !== undefined)
          return {
            degree: 'polynomial',
            prefix: this.#prefixOf(first),
            pump,
            why: 'two loops read the same',
          };
      }
    return undefined;
  }

  loops(): readonly { prefix: string; pump: string }[] {
    return this.#looping(this.#components).flatMap((state) => {
      const pump = this.#walk(
        [state],
        (to) => to[0] === state,
        (place) => this.#steps(place[0] as number),
      );
      return pump === undefined ? [] : [{ prefix: this.#prefixOf(state), pump }];
    });
  }

  /** Returns the states that are part of a loop. */
  #looping(numbers: readonly number[]): readonly number[] {
    return this.#automaton.edges.flatMap((edges, state) => {
      const isLoop = edges.some(({ to }) => numbers[to] === numbers[state] && numbers[state] !== -1);
      return isLoop ? [state] : [];
    });
  }

  #twoWaysAround(state: number): string | undefined {
    const inside = (edge: Edge) => this.#fallible[edge.to] === this.#fallible[state];
    return this.#walk(
      [state, state, 0],
      (place) => place[0] === state && place[1] === state && place[2] === 1,
      ([one = 0, other = 0, parted = 0]) => {
        const found: Step[] = [];
        for (const a of this.#edges(one).filter(inside))
          for (const b of this.#edges(other).filter(inside)) {
            const by = common(a.classes, b.classes);
            if (by !== undefined) found.push({ to: [a.to, b.to, parted === 1 || a !== b ? 1 : 0], by });
          }
        return found;
      },
    );
  }

  /**
   * Returns one text that the matcher can consume on three paths: from the first state back to it,
   * from the first state to the second, and from the second state back to it.
   */
  #overlap(first: number, second: number): string | undefined {
    const { safe } = this.#automaton;
    const inFirst = (state: number) => this.#components[state] === this.#components[first];
    const inSecond = (state: number) => this.#fallible[state] === this.#fallible[second];
    return this.#walk(
      [first, first, second],
      (place) => place[0] === first && place[1] === second && place[2] === second,
      ([one = 0, between = 0, other = 0]) => {
        const found: Step[] = [];
        for (const a of this.#edges(one).filter(({ to }) => inFirst(to)))
          for (const c of this.#edges(other).filter(({ to }) => inSecond(to)))
            for (const b of this.#edges(between)) {
              if (!inFirst(b.to) && safe.has(b.to)) continue;
              const by = common(a.classes, c.classes, b.classes);
              if (by !== undefined) found.push({ to: [a.to, b.to, c.to], by });
            }
        return found;
      },
    );
  }

  #prefixOf(state: number): string {
    const { start } = this.#automaton;
    if (state === start) return '';
    return (
      this.#walk(
        [start],
        (to) => to[0] === state,
        (place) => this.#steps(place[0] as number),
      ) ?? ''
    );
  }

  #steps(state: number): readonly Step[] {
    return this.#edges(state).flatMap(({ to, classes }) => {
      const [by] = classes;
      return by === undefined ? [] : [{ to: [to], by }];
    });
  }

  #edges(state: number): readonly Edge[] {
    return this.#automaton.edges[state] ?? [];
  }

  /**
   * Returns the shortest text, at least one character long, that leads from the given state to a
   * state that satisfies `isMeant`.
   */
  #walk(
    from: readonly number[],
    isMeant: (place: readonly number[]) => boolean,
    steps: (place: readonly number[]) => readonly Step[],
  ): string | undefined {
    const came = new Map<string, { readonly before: string; readonly by: number }>();
    const line: (readonly number[])[] = [from];
    for (const place of line)
      for (const { to, by } of steps(place)) {
        const key = to.join();
        if (came.has(key)) continue;
        came.set(key, { before: place.join(), by });
        if (isMeant(to)) return this.#textOf(key, from.join(), came);
        line.push(to);
      }
    return undefined;
  }

  #textOf(end: string, start: string, came: ReadonlyMap<string, { before: string; by: number }>): string {
    let text = '';
    let at = end;
    do {
      const step = came.get(at);
      if (step === undefined) break;
      text = (this.#automaton.samples[step.by] ?? '') + text;
      at = step.before;
    } while (at !== start);
    return text;
  }
}

interface Step {
  readonly to: readonly number[];
  /** The character class that the step consumes. */
  readonly by: number;
}

function common(...sets: readonly ReadonlySet<number>[]): number | undefined {
  const [smallest = new Set<number>(), ...rest] = sets.toSorted((a, b) => a.size - b.size);
  for (const each of smallest) if (rest.every((set) => set.has(each))) return each;
  return undefined;
}

/** Returns the number of the strongly connected component of each state; -1 for excluded states. */
function components({ edges }: Automaton, isIn: (state: number) => boolean): readonly number[] {
  const numbers: number[] = edges.map(() => -1);
  const observed: number[] = edges.map(() => -1);
  const low: number[] = edges.map(() => -1);
  const stack: number[] = [];
  const onStack = new Set<number>();
  let next = 0;
  const visit = (state: number) => {
    observed[state] = low[state] = next++;
    stack.push(state);
    onStack.add(state);
    for (const { to } of edges[state] ?? []) {
      if (!isIn(to)) continue;
      if (observed[to] === -1) {
        visit(to);
        low[state] = Math.min(low[state] as number, low[to] as number);
      } else if (onStack.has(to)) low[state] = Math.min(low[state] as number, observed[to] as number);
    }
    if (low[state] !== observed[state]) return;
    for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
      onStack.delete(top);
      numbers[top] = state;
      if (top === state) break;
    }
  };
  for (let state = 0; state < edges.length; state++) if (isIn(state) && observed[state] === -1) visit(state);
  return numbers;
}
