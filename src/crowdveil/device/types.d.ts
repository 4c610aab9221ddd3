// The shapes that the device's modules hand to each other, known in all of them by name. Read by the type checker only; the
// browser never loads it.

// the channel
/** null is ∅, "no answer" */
type Input = string | null;
type Output = string | null | (string | null)[];
/** Randomised response: `keep` on the diagonal, `lie` elsewhere. */
type Rotation = { keep: bigint; lie: bigint };

/** A channel that passed every check. */
type Channel = {
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

type ReadWeights = (spelled: unknown[][], nInputs: number, nOutputs: number) => bigint[][];
type Probability = (channel: Channel, input: number, output: number) => number;
type Combinations = (n: number, size: number, first?: number) => number[][];
type Choose = (n: number, size: number) => bigint;
type Unfold = (kind: any, shape: Shape) => bigint[][];
type Shape = { inputs: number; outputs: number; bits: number };
/** Outputs are all subsets of `size` inputs, in order. */
type Subset = (size: number, inside: bigint, outside: bigint, shape: Shape) => bigint[][];
/** Noise is added to the level and clamped to the outputs. */
type Clamp = (noise: bigint[], offset: number, nullInput: boolean, shape: Shape) => bigint[][];
type MeanRow = (rows: bigint[][], total: bigint) => bigint[];
type Draw = (channel: Channel, answers: number[], source?: ByteSource) => number[];
type InputCode = (channel: Channel, answer: number) => number;
/** The prefix sums of an input's row. */
type Thresholds = (channel: Channel) => (input: number) => bigint[];
type CountPassed = (row: bigint[], word: bigint) => number;
type ByteSource = { take: (nBytes: number) => Uint8Array };

// exact numbers
/** Of numerator and denominator. */
type OfRatio<T> = (top: bigint, bottom: bigint) => T;
type OfNumbers = (one: number, other: number) => number;
type Compress = (state: Uint32Array, view: DataView, start: number) => void;

// the ledger
/** In nano-units. */
type Charge = { epsilon: number; rho: number };
type Spent = (lines: Iterable<Line>, since?: string) => Charge;
type OfTwo<T> = (one: Charge, other: Charge) => T;
type NotBefore = (lines: Map<string, Line>, day: string) => string;

// divergence
type Largest = <T>(items: T[], measure: (item: T) => number) => number;
type ChordBound = (worst: (alpha: number) => number, low: number, high: number) => number;
type OfTable = (weights: bigint[][]) => number;
type WorstRenyi = (weights: bigint[][]) => (alpha: number) => number;
type Dot = (p: Float64Array, q: Float64Array) => number;
/** What the checker cannot know to be there is. */
type At = (numbers: Float64Array | Uint32Array, i: number) => number;
type Renyi = (above: Float64Array[], floor: Float64Array, alpha: number) => number;

type Line = {
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
type Draws = Map<string, string>;
type DrawsOf = (entries: Iterable<Entry>) => Draws;
type Merge = (lines: Map<string, Line>, others: Line[], own?: Draws, theirs?: Draws) => Line[];
type Surplus = (before: Line, other: Line, own?: string, theirs?: string) => Line | null;

/** More is whatever else must travel. */
type ExportLedger = (lines: Iterable<Line>, more?: Record<string, unknown>) => string;
type CarryOver = (lines: Map<string, Line>, elsewhere: Charge, day: string) => Line | null;
type AskToCharge = (lines: Map<string, Line>, line: Line, cap: Charge, since?: string, advice?: string[]) => Line;
type RefuseCharge = (cost: Charge, left: Charge, advice: string[]) => import("./refusal.js").Refusal;

// the study
type Question = {
  id: string;
  text: string;
  domain: any;
  show_if: { question: string; any_of: string[] } | null;
};

type Level = {
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
type Study = {
  id: string;
  sha256: string;
  definition: any;
  questions: Question[];
  levels: Level[];
  protectsParticipation: boolean;
  maxAnswers: number | null;
};

type LogEntry = { index: number; study: string; sha256: string; day: string; previous: string; entry: string };
/** Symbols by question; null: the worker would rather not say. */
type Answers = Map<string, string | null>;
type Cell = { question: string; channel: Channel; answer: number };

type Refuse = (holds: boolean, key: string, values?: Values) => void;
type Must = (holds: (value: any) => boolean) => Kind;
type ListOf = (each: Kind, most?: number) => Kind;
type ObjectOf = (fields: Record<string, Kind>) => Kind;
type OrNull = (kind: Kind) => Kind;
/** Refuses a value that is not of this kind, by the name of its place. */
type Kind = (value: any, place: string) => void;
/** What the broker sent, unchecked. */
type Definition = { levels: any[]; questions: Question[]; channels: Record<string, unknown> } & Record<string, any>;
type CheckEntry = (entry: LogEntry, previous?: string) => void;
type MostSure = (channel: Channel, report: number) => number;
type ReadStudy = (answer: { definition: Definition; sha256: string }, entry: LogEntry, id: string) => Study;
type ReadLevel = (level: any, all: Map<string, Channel>, study: Omit<Study, "levels">) => Level;
type CheckSkips = (study: Omit<Study, "levels">, levels: Level[]) => void;
type ChargeOf = (channels: Channel[], study: Pick<Study, "protectsParticipation" | "maxAnswers">) => Charge;
type CheckCharge = (level: any, computed: Charge, isProtected: boolean) => void;
type CheckFits = (channel: Channel, question: Question, protects: boolean) => void;
type Visible = (study: Study, answers: Answers) => Question[];
type CostOf = (study: Study, level: Level, answers: Answers) => Charge;
type CellsOf = (study: Study, level: Level, answers: Answers) => Cell[];

type Signed = (value: unknown, signature: unknown, publicKey: unknown) => Promise<boolean | null>;

// the outbox
type Entry = {
  study: string;
  title: string;
  level: string;
  /** waiting: the worker said "send"; unknown: a reply was lost, and asking again tells nothing; absent: nothing there to take back */
  state: "drawn" | "waiting" | "sent" | "refused" | "unknown" | "withdrawn" | "absent";
  /** Exactly what is sent. */
  body: { reports: { question: string; channel: string; report: any }[] } & Record<string, any>;
  idempotencyKey: string;
  /** Its hash is sent; only this device can take the reports back. */
  withdrawalKey: string;
  /** What was answered; never sent, and can be forgotten. */
  answers: Record<string, string | null>;
  receipt: any;
  /** It came in a text from another device. */
  imported?: boolean;
  /** It may have left this device. */
  tried?: boolean;
  /** Whether the receipt is signed by this broker; null where this browser cannot tell. */
  genuine?: boolean | null;
  day: string;
};

type Commit = (
  store: Store,
  study: Study,
  level: Level,
  answers: Answers,
  setting: { cap: Charge; day: string; since?: string; isHeld?: boolean },
) => Promise<Entry>;

/** The names of sentences that advise. */
type Remedies = (study: Study, level: Level, used: Charge, cap: Charge, isHeld: boolean) => string[];
type LineOf = (study: Study, level: Level, cells: Cell[], day: string) => Line;
type DrawEntry = (study: Study, level: Level, cells: Cell[]) => Omit<Entry, "answers" | "day">;
/** Gives what got an answer now. */
type Flush = (store: Store, send: Send) => Promise<Entry[]>;
type SetEntry = (store: Store, study: string, changed: Partial<Entry>) => Promise<Entry>;

// the store
type Table = "ledger" | "outbox" | "settings" | "drafts";
type Rows = {
  ledger: Map<string, Line>;
  outbox: Map<string, Entry>;
  settings: { get(key: "me"): Me | undefined } & Map<string, any>;
  drafts: Map<string, Draft>;
};
/** Without a value the row is removed. */
type Write = { table: Table; key: string; value?: any };
type RowsOf = (transaction: IDBTransaction) => Promise<Rows>;
type OpenStore = (name?: string) => Promise<Store>;
type Decide<T> = (rows: Rows, transaction: IDBTransaction) => { result?: T; writes?: Write[] };
type Change = <T>(database: IDBDatabase, decide: Decide<T>) => Promise<T>;
type Finished = <T>(request: IDBRequest<T>) => Promise<T>;
type Safely = <T>(work: () => T) => T | null;
type Store = { update: <T>(decide: Decide<T>) => Promise<T>; clear: () => Promise<void> };

// the worker and the pages
type Me = { level: string; cap: number; period: "life" | "year"; language?: string; token?: string; renewAfter?: string; brokerKey?: string };
/** What the account `token` asks of the broker. */
type OfAccount<T> = (token: string) => Promise<T>;
type WithToken = <T>(call: OfAccount<T>) => Promise<T>;
type Expected = (error: unknown) => boolean;
type RetryRenewed = <T>(call: OfAccount<T>, token: string) => Promise<T>;
type AskKnown = <T>(call: OfAccount<T>) => Promise<T | null>;
type Ask = <T>(call: OfAccount<T>, expected: Expected) => Promise<T | null>;
/** An account that is gone is told of. */
type Known = <T>(call: OfAccount<T>) => OfAccount<T>;
type OrElse = <T>(expected: Expected, instead: () => T) => (error: unknown) => T;
type Put = (table: Table, key: string, value?: unknown) => Promise<void>;
type SetMe = (me: Partial<Me>) => Write[];
type KeyOf = (issued: { token: string; expires: string }) => { token: string; renewAfter: string };
type ByLevel = (study: Study, level: string) => Promise<any>;
type Protect = (study: Study, level: string, answers: Answers) => Promise<Entry>;
type Send = (entry: Entry) => Promise<Partial<Entry>>;
/** A study in the list, which was not checked. */
type Card = {
  id: string;
  title: string;
  requester: string;
  purpose: string;
  n_questions: number;
  places?: boolean;
  status?: string;
  levels: any[];
  protects_participation: boolean;
  linkable: boolean;
};
type Draft = { level: string; expires: string; answers: Record<string, string | null> };
type State = {
  me: Me | undefined;
  lines: Map<string, Line>;
  outbox: Map<string, Entry>;
  drafts: Map<string, Draft>;
  /** What the broker's copy says was spent, where that is more than is known here and nobody has decided yet. */
  claim: Charge | undefined;
  /** The worker left this site and kept the ledger. */
  left: { day: string; me: Me } | undefined;
};

// taking over a text
type Moved = { lines: Line[]; entries: Entry[]; me: Me | undefined };
type ReadMoved = (text: string) => Moved;
type KnownEntry = (entry: Entry) => Entry;
type Takeover = {
  /** New lines of the ledger, and what they cost. */
  n: number;
  epsilon: number;
  draws: number;
  /** Unsent draws of another account, which stay there. */
  foreign: number;
  before: Me | undefined;
  after: Me | undefined;
  accountLeft: boolean;
  writes: Write[];
  me: Me | undefined;
};
type PlanTakeover = (rows: Rows, moved: Moved, isGone: boolean) => Takeover;
type Stricter = (mine: string | undefined, other: string) => string;
type WaitForWorker = (entry: Entry) => Entry;
type ChangesOf = (plan: Takeover) => Child[];
type Budget = { cap: Charge; used: Charge; left: Charge; share: number };
type Child = Node | string | number | Record<string, any> | null | undefined | false;
/** What a sentence of the catalogue is filled in with. */
type Values = Record<string, any>;
type Field = { id: string; legend: string; answer: string | null | undefined; onAnswer: OnAnswer };
type Parts = (...parts: (Child | Child[])[]) => HTMLElement;
type Make = (tag: string, ...parts: (Child | Child[])[]) => HTMLElement;
type Notice = (kind: "good" | "warn" | "bad", ...content: (Child | Child[])[]) => HTMLElement;
type Download = (name: string, text: string) => void;
type SetAttribute = (element: HTMLElement, name: string, value: any) => void;
/** Our own words for the broker's code, or else its sentence. */
type ProblemText = (code: string, detail: string) => string;
type FormatNumber = (value: number, how: Intl.NumberFormatOptions) => string;
type Says = (tag: string, key: string, values?: Values) => HTMLElement;
type Button = (key: string, onclick: () => unknown, kind?: string, values?: Values) => HTMLElement;
type ProtectionText = (isProtected: boolean, key: string, values?: Values) => string;
type AnswerPanel = (isProtected: boolean, content: string) => HTMLElement;
type ClaimQuestion = (context: Context) => Child;
type LeaveButton = (context: Context) => HTMLElement;
type EarlierUse = (state: State, evictedSince: string | null) => HTMLElement;
type Column = (name: string, value: string) => HTMLElement;
type QuestionField = (question: Question, answer: Field["answer"], onAnswer: OnAnswer) => HTMLElement;
/** All are the symbols, or the boxes that can be ticked. */
type Control = (field: Field, all: string[]) => Child[];
type Panels = (study: Study, entry: Entry) => Child[];
type BudgetBar = (now: Budget, after?: number) => HTMLElement;
type Radio = (
  name: string, value: string, label: Child | Child[], checked: boolean, onchange: () => void, type?: string,
) => HTMLElement;
type Choice = (
  label: string, values: string[], current: string, onchoice: (value: any) => void, words: (value: string) => string,
) => HTMLElement;
type Panel = (kind: string, drawing: "lock" | "send" | "eye" | "warn", title: string, content: string) => HTMLElement;
/** Spelled is a symbol of a channel: ∅, an option, a level, ticked boxes or a subset. */
type InWords = (spelled: unknown, domain?: any) => string;
/** null: would rather not say; undefined: nothing chosen */
type OnAnswer = (symbol: string | null | undefined) => void;
type Context = {
  device: import("./worker.js").Device;
  state: State;
  act: (work: () => Promise<unknown>) => Promise<void>;
  show: () => Promise<void>;
  go: (work: () => Promise<unknown>, said?: (result: any) => string) => Promise<void>;
  release: { name: string; signed: boolean };
  /** The day of the last use, where the browser has evicted what was stored; else null. */
  evictedSince: string | null;
};
type PageOf = (context: Context, path: string[]) => Promise<Child[]>;
type StudyPage = (context: Context, id: string) => Promise<Child[]>;
type AfterAsking = (key: string, work: () => unknown) => HTMLElement;
type TakeBack = (context: Context, entry: Entry) => Child;
type Page = (context: Context) => Promise<Child[]>;
/** A control that changes what was chosen. */
type ChoiceOf = (label: string, chosen: Me, onchoice?: () => void) => HTMLElement;
type LevelLabel = (name: string, help: string) => Child[];
/** The cap is in ε, for people; what is kept is in nano-units. */
type Save = (device: Context["device"], chosen: Me, go: Context["go"], said?: () => string) => Promise<void>;
type Fact = (name: string, value: string | number, note?: string | null) => HTMLElement;
type ShowCard = (item: Card, state: State, left: Charge) => HTMLElement;
type Tagged = Pick<Card, "protects_participation" | "linkable"> & { levels: { protected: boolean }[] };
type Answering = (context: Context, study: Study, draft: Draft) => Child[];
type Review = (context: Context, study: Study, entry: Entry) => Child[];
/** The value is a text, and one of those that the control offers. */
type WithValue = (work: (value: any) => void) => (event: Event) => void;
type Around = { isSigned: boolean | null; problem: string; warnings: string[] };
type Offer = (context: Context, study: Study, around: Around) => Child[];

// the network
type Call = (
  method: string,
  path: string,
  options?: { body?: object; token?: string; headers?: Record<string, string> },
) => Promise<any>;
/** A call about the account itself. */
type OfMe = (method: string, path?: string, body?: object) => OfAccount<any>;
type Fetch = (url: string, request: RequestInit) => Promise<Response>;
type Api = {
  words: (url: string, integrity: string) => Promise<Record<string, string>>;
  info: () => Promise<any>;
  studies: () => Promise<{ items: Card[] }>;
  study: (id: string) => Promise<any>;
  log: (after: number) => Promise<any>;
  join: (level: string, cap: number) => Promise<any>;
  myStudies: OfAccount<{ items: Card[] }>;
  me: OfAccount<any>;
  change: (token: string, changed: object) => Promise<any>;
  renew: OfAccount<any>;
  leave: OfAccount<any>;
  exportMine: OfAccount<any>;
  payments: OfAccount<any>;
  reserve: (token: string, id: string, level: string, sha256: string) => Promise<any>;
  cancel: (token: string, id: string) => Promise<any>;
  submit: (token: string, entry: Entry) => Promise<any>;
  withdraw: (id: string, key: string) => Promise<any>;
};
