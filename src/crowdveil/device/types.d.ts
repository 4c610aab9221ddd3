// The shapes that the device's modules hand to each other. Read by the type checker only; the browser never loads it.
import type { Device } from "./worker.js";

// the channel
/** null is ∅, "no answer" */
export type Input = string | null;
export type Output = string | null | (string | null)[];
/** Randomised response: `keep` on the diagonal, `lie` elsewhere. */
export type Rotation = { keep: bigint; lie: bigint };

/** A channel that passed every check. */
export type Channel = {
  inputs: Input[];
  outputs: Output[];
  bits: 32 | 64;
  rotation: Rotation | null;
  /** The table; empty for a rotation, which needs none. */
  weights: bigint[][];
  /** ∅ is an input like any other. */
  protectsParticipation: boolean;
  /** Inputs without ∅. */
  nLevels: number;
  /** Computed from the integers, rounded up; Infinity means not protected. */
  epsilon: number;
  sha256: string;
};

export type ReadWeights = (spelled: any, nInputs: number, nOutputs: number) => bigint[][];
export type Probability = (channel: Channel, input: number, output: number) => number;
export type Combinations = (n: number, size: number, first?: number) => number[][];
export type Shape = { inputs: number; outputs: number; bits: number };
/** Outputs are all subsets of `size` inputs, in order. */
export type Subset = (size: number, inside: bigint, outside: bigint, shape: Shape) => bigint[][];
/** Noise is added to the level and clamped to the outputs. */
export type Clamp = (noise: bigint[], offset: number, nullInput: boolean, shape: Shape) => bigint[][];
export type MeanRow = (rows: bigint[][], total: bigint) => bigint[];
export type ByteSource = { take: (nBytes: number) => Uint8Array };

// the ledger
/** In nano-units. */
export type Charge = { epsilon: number; rho: number };
export type OfTwo<T> = (one: Charge, other: Charge) => T;
export type NotBefore = (lines: Map<string, Line>, day: string) => string;

// divergence
export type Largest = <T>(items: T[], measure: (item: T) => number) => number;
export type ChordBound = (worst: (alpha: number) => number, low: number, high: number) => number;
export type Renyi = (above: Float64Array[], floor: Float64Array, alpha: number) => number;

export type Line = {
  /** The study, or what else was charged; the same key is charged once. */
  key: string;
  kind: "study" | "unprotected" | "carried-over";
  /** What the worker is shown. */
  name: string;
  level: string;
  reports: number;
  /** In nano-units; 0 where unprotected: listed, never summed. */
  epsilon: number;
  rho: number;
  day: string;
};

/** By study: what tells one draw from another. */
export type Draws = Map<string, string>;
export type DrawsOf = (entries: Iterable<Entry>) => Draws;
export type Merge = (lines: Map<string, Line>, others: Line[], own?: Draws, theirs?: Draws) => Line[];
export type Surplus = (before: Line, other: Line, own?: string, theirs?: string) => Line | null;

export type CarryOver = (lines: Map<string, Line>, elsewhere: Charge, day: string) => Line | null;
export type AskToCharge = (lines: Map<string, Line>, line: Line, cap: Charge, since?: string) => Line;

// the study
export type Question = {
  id: string;
  text: string;
  domain: any;
  show_if: { question: string; any_of: string[] } | null;
};

export type Level = {
  name: string;
  protected: boolean;
  /** In cents. */
  pay: number;
  /** The most it can cost. */
  charge: Charge;
  /** By question. */
  channels: Map<string, Channel>;
};

/** A study that passed every check. */
export type Study = {
  id: string;
  sha256: string;
  definition: any;
  questions: Question[];
  levels: Level[];
  protectsParticipation: boolean;
  maxAnswers: number | null;
};

export type LogEntry = { index: number; study: string; sha256: string; day: string; previous: string; entry: string };
export type Cell = { question: string; channel: Channel; answer: number };

/** Refuses a value that is not of this kind, by the name of its place. */
export type Kind = (value: any, place: string) => void;
export type ReadStudy = (answer: any, entry: LogEntry, id: string) => Study;
export type ReadLevel = (level: any, all: Map<string, Channel>, study: Omit<Study, "levels">) => Level;
export type CheckSkips = (study: Omit<Study, "levels">, levels: Level[]) => void;
export type ChargeOf = (channels: Channel[], study: Pick<Study, "protectsParticipation" | "maxAnswers">) => Charge;
export type CheckCharge = (level: any, computed: Charge, isProtected: boolean) => void;
export type CheckFits = (channel: Channel, question: Question, protects: boolean) => void;
/** Answers are symbols by question. */
export type Visible = (study: Study, answers: Map<string, string>) => Question[];
export type CellsOf = (study: Study, level: Level, answers: Map<string, string>) => Cell[];

export type Signed = (value: unknown, signature: unknown, publicKey: unknown) => Promise<boolean | null>;

// the outbox
export type Entry = {
  study: string;
  title: string;
  level: string;
  /** waiting: the worker said "send"; unknown: a reply was lost, and asking again tells nothing; absent: nothing there to take back */
  state: "drawn" | "waiting" | "sent" | "refused" | "unknown" | "withdrawn" | "absent";
  /** Exactly what is sent. */
  body: any;
  idempotencyKey: string;
  /** Its hash is sent; only this device can take the reports back. */
  withdrawalKey: string;
  /** What was answered; never sent, and can be forgotten. */
  answers: Record<string, string>;
  receipt: any;
  /** It may have left this device. */
  tried?: boolean;
  /** Whether the receipt is signed by this broker; null where this browser cannot tell. */
  genuine?: boolean | null;
  day: string;
};

export type Commit = (
  store: Store,
  study: Study,
  level: Level,
  answers: Map<string, string>,
  setting: { cap: Charge; day: string; since?: string },
) => Promise<Entry>;

export type LineOf = (study: Study, level: Level, cells: Cell[], day: string) => Line;
export type DrawEntry = (study: Study, level: Level, cells: Cell[]) => Omit<Entry, "answers" | "day">;
/** Gives what got an answer now. */
export type Flush = (store: Store, send: (entry: Entry) => Promise<Partial<Entry>>) => Promise<Entry[]>;
export type SetEntry = (store: Store, study: string, changed: Partial<Entry>) => Promise<Entry>;

// the store
export type Table = "ledger" | "outbox" | "settings" | "drafts";
export type Rows = Record<Table, Map<string, any>>;
/** Without a value the row is removed. */
export type Write = { table: Table; key: string; value?: any };
export type Decide<T> = (rows: Rows, transaction: IDBTransaction) => { result?: T; writes?: Write[] };
export type Change = <T>(database: IDBDatabase, decide: Decide<T>) => Promise<T>;
export type Finished = <T>(request: IDBRequest<T>) => Promise<T>;
export type Store = { update: <T>(decide: Decide<T>) => Promise<T>; clear: () => Promise<void> };

// the worker and the pages
export type Me = { level: string; cap: number; period: "life" | "year"; language?: string; token?: string; renewAfter?: string; brokerKey?: string };
/** Where both devices have an account, one must be chosen. */
export type Keep = "mine" | "other";
export type MoveIn = (text: string, keep?: Keep) => Promise<number>;
export type AccountAfter = (other: Me | undefined, keep?: Keep) => Promise<Pick<Me, "token" | "renewAfter">>;
export type WithToken = <T>(call: (token: string) => Promise<T>) => Promise<T>;
export type Draft = { level: string; expires: string; answers: Record<string, string> };
export type State = { me: Me | undefined; lines: Map<string, Line>; outbox: Map<string, Entry>; drafts: Map<string, Draft> };
export type Budget = { cap: Charge; used: Charge; left: Charge; share: number };
export type Child = Node | string | number | Record<string, any> | null | undefined | false;
/** What a sentence of the catalogue is filled in with. */
export type Values = Record<string, any>;
export type Field = { id: string; legend: string; answer: string | undefined; onAnswer: OnAnswer };
export type Radio = (
  name: string, value: string, label: Child | Child[], checked: boolean, onchange: () => void, type?: string,
) => HTMLElement;
export type Choice = (
  label: string, values: string[], current: string, onchoice: (value: string) => void, words: (value: string) => string,
) => HTMLElement;
export type Panel = (kind: string, drawing: "lock" | "send" | "eye", title: string, content: string) => HTMLElement;
/** Spelled is a symbol of a channel: ∅, an option, a level, ticked boxes or a subset. */
export type InWords = (spelled: unknown, domain?: any) => string;
/** undefined: skipped */
export type OnAnswer = (symbol: string | undefined) => void;
export type Context = {
  device: Device;
  state: State;
  act: (work: () => Promise<unknown>) => Promise<void>;
  show: () => Promise<void>;
  go: (work: () => Promise<unknown>, said?: (result: any) => string) => Promise<void>;
  release: { name: string; signed: boolean };
};
export type Around = { isSigned: boolean | null; problem: string; warnings: string[] };
export type Offer = (context: Context, study: Study, around: Around) => Child[];

// the network
export type Call = (
  method: string,
  path: string,
  options?: { body?: object; token?: string; headers?: Record<string, string> },
) => Promise<any>;
export type Api = {
  words: (url: string, integrity: string) => Promise<Record<string, string>>;
  info: () => Promise<any>;
  studies: () => Promise<any>;
  study: (id: string) => Promise<any>;
  log: (after: number) => Promise<any>;
  join: (level: string, cap: number) => Promise<any>;
  myStudies: (token: string) => Promise<any>;
  me: (token: string) => Promise<any>;
  change: (token: string, changed: object) => Promise<any>;
  renew: (token: string) => Promise<any>;
  leave: (token: string) => Promise<any>;
  exportMine: (token: string) => Promise<any>;
  payments: (token: string) => Promise<any>;
  reserve: (token: string, id: string, level: string, sha256: string) => Promise<any>;
  cancel: (token: string, id: string) => Promise<any>;
  submit: (token: string, entry: Entry) => Promise<any>;
  withdraw: (id: string, key: string) => Promise<any>;
};
