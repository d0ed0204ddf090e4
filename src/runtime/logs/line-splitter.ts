import {
  HeadParser,
  type LineHead,
  maxHeadBytes,
  maxJsonLineBytes,
  type ParsedHead,
  parseJsonLine,
} from './log-line.ts';

/** What is told of each line of a log's file that is one; others are passed over. */
export interface LineSink {
  begin(head: LineHead): void;
  /** The text in as many pieces as it comes; only good during the call. */
  text(bytes: Uint8Array): void;
  /** `position` is where the next line begins. A line is cut when its file ends before it does. */
  end(how: 'whole' | 'cut', position: number): void;
}

const newline = 0x0a;
const brace = 0x7b;
const nothing = new Uint8Array(0);

/** Finds the lines in the bytes of a log, whatever their length; keeps no more than the head of a line. */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #heads = new HeadParser();
  #state: 'head' | 'text' | 'json' | 'bad' = 'head';
  #carry: Uint8Array = nothing;
  /** Of the next byte to come. */
  #position: number;

  constructor(sink: LineSink, position = 0) {
    this.#sink = sink;
    this.#position = position;
  }

  /** Whether a line has begun that has not ended. */
  get isInLine(): boolean {
    return this.#state !== 'head' || this.#carry.length > 0;
  }

  feed(chunk: Uint8Array): void {
    const base = this.#position;
    let at = 0;
    while (at < chunk.length) {
      const found = chunk.indexOf(newline, at);
      const end = found < 0 ? chunk.length : found;
      this.#position = base + end;
      this.#take(chunk.subarray(at, end));
      if (found >= 0) {
        this.#position++;
        this.#endLine('whole');
      }
      at = end + 1;
    }
  }

  /** The file ends here; the next bytes are of another one. */
  endFile(): void {
    this.#endLine('cut');
    this.#position = 0;
  }

  /** More of a line. */
  #take(bytes: Uint8Array): void {
    if (this.#state === 'head') this.#takeHead(bytes);
    else if (this.#state === 'text') this.#sink.text(bytes);
    else if (this.#state === 'json') this.#takeJson(bytes);
  }

  #takeHead(bytes: Uint8Array): void {
    if ((this.#carry[0] ?? bytes[0]) === brace) {
      this.#state = 'json';
      this.#takeJson(bytes);
      return;
    }
    const kept = this.#carry.length;
    const all = kept === 0 ? bytes : Buffer.concat([this.#carry, bytes.subarray(0, maxHeadBytes - kept)]);
    const head = this.#heads.parse(all);
    if (head !== undefined) this.#begin(head, bytes.subarray(head.length - kept));
    else if (all.length >= maxHeadBytes) this.#state = 'bad';
    else this.#carry = Uint8Array.from(all);
  }

  #begin(head: ParsedHead, text: Uint8Array): void {
    this.#state = 'text';
    this.#sink.begin(head);
    if (text.length > 0) this.#sink.text(text);
  }

  #takeJson(bytes: Uint8Array): void {
    if (this.#carry.length + bytes.length > maxJsonLineBytes) this.#state = 'bad';
    else this.#carry = Buffer.concat([this.#carry, bytes]);
  }

  #endLine(how: 'whole' | 'cut'): void {
    if (this.#state === 'text') this.#sink.end(how, this.#position);
    else if (this.#state === 'json') this.#endJson();
    this.#state = 'head';
    this.#carry = nothing;
  }

  #endJson(): void {
    const line = parseJsonLine(this.#carry);
    if (line === undefined) return;
    this.#sink.begin(line);
    this.#sink.text(line.text);
    this.#sink.end('whole', this.#position);
  }
}
