#!/usr/bin/env python3
"""Makes editor.json: sequences of requests, with what OpenHands answers to them.

    PYTHON generate.py [OUTPUT]

PYTHON needs openhands-aci 0.3.2. The requests are made up here, from a fixed seed; each sequence has a directory of its
own, which stands as ROOT in all texts. Binary content is in base64.
"""

import base64
import json
import logging
import os
import random
import shutil
import sys
import tempfile

from binaryornot.helpers import is_binary_string
from openhands_aci.editor.editor import OHEditor
from openhands_aci.editor.exceptions import ToolError
from openhands_aci.utils.diff import get_diff

logging.disable(logging.CRITICAL)

ROOT = 'ROOT'
# Lines that edits are made of.
WORDS = ['a', 'b', 'B', 'foo', 'bar baz', '  indented', '\ttab', 'trailing  ', 'é', '世界', '𝄞 clef', 'quote\'"',
         'back\\slash', 'x' * 70, '`tick`', '{brace}', '$1', '\x0cfeed', 'nel\u0085', 'sep\u2028in', '\u00a0nbsp', '']


def told_encodings(manager):
    """Tells the reference which files are UTF-8: it takes some for something else, and overlooks some marks."""
    guess = manager.detect_encoding

    def detect(path):
        content = path.read_bytes()
        try:
            content.decode()
        except UnicodeDecodeError:
            return guess(path)
        return 'utf-8-sig' if content.startswith(b'\xef\xbb\xbf') else 'utf-8'

    manager.detect_encoding = detect


class Recorder:
    def __init__(self, base, number):
        self.root = os.path.join(base, f's{number}')
        os.makedirs(self.root)
        self.editor = OHEditor(workspace_root=self.root)
        told_encodings(self.editor._encoding_manager)
        self.steps = []

    def close(self):
        files = {}
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(directory, name)
                if os.path.isfile(path):
                    with open(path, 'rb') as file:
                        files[os.path.relpath(path, self.root)] = base64.b64encode(file.read()).decode()
        shutil.rmtree(self.root)
        return {'steps': self.steps, 'files': files}

    def local(self, path):
        return path.replace(ROOT, self.root)

    def general(self, text):
        return text.replace(self.root, ROOT)

    def put(self, name, content):
        if isinstance(content, str):
            content = content.encode()
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(content)
        self.steps.append({'put': name, 'content': base64.b64encode(content).decode()})

    def directory(self, name):
        os.makedirs(os.path.join(self.root, name))
        self.steps.append({'directory': name})

    def link(self, name, target):
        os.symlink(target, os.path.join(self.root, name))
        self.steps.append({'link': name, 'target': target})

    def run(self, command, path=ROOT + '/f.txt', **parameters):
        step = {'command': command, 'path': path, **parameters}
        given = {key: value for key, value in parameters.items() if value is not None}
        try:
            result = self.editor(command=command, path=self.local(path), **given)
            if result.error:
                step['error'] = self.general(result.error)
            else:
                step['output'] = self.general(result.output or '')
                old, new = result.old_content, result.new_content
                step['diff'] = ''
                if new is not None:
                    step['diff'] = self.general(get_diff(old or '', new, self.local(path)))
        except ToolError as error:
            step['error'] = self.general(error.message)
        except Exception as error:
            # What the caller of the reference sees as an error of the server.
            step['failure'] = f'{type(error).__name__}: {self.general(str(error))}'
        self.steps.append(step)


def lines(random, count, end=None, words=WORDS):
    text = '\n'.join(random.choice(words) for _ in range(count))
    return text + (random.choice(['', '\n', '\n\n']) if end is None else end)


def random_edits(recorder, random):
    """A file and some edits of it, most of which succeed."""
    path = ROOT + '/f.txt'
    mark = '\ufeff' if random.random() < 0.1 else ''
    # The reference overlooks the mark before some texts.
    words = [word for word in WORDS if word.isascii()] if mark else WORDS
    text = lines(random, random.randint(0, 40), words=words)
    if random.random() < 0.15:
        text = text.replace('\n', '\r\n')
    if mark:
        recorder.put('f.txt', mark + text)
    elif random.random() < 0.5:
        recorder.put('f.txt', text)
    else:
        recorder.run('create', path, file_text=text)
    for _ in range(random.randint(1, 9)):
        with open(os.path.join(recorder.root, 'f.txt'), 'rb') as file:
            if is_binary_string(file.read(1024)):
                # Few characters are binary there and text here.
                return
        with open(os.path.join(recorder.root, 'f.txt'), encoding='utf-8-sig') as file:
            now = file.read()
        count = len(now.splitlines())
        kind = random.choice(['replace', 'replace', 'insert', 'insert', 'undo', 'view', 'range', 'outside'])
        if kind == 'replace':
            start = random.randint(0, len(now))
            old = now[start:start + random.randint(0, 40)]
            if random.random() < 0.1:
                old = f' {old}\n'
            new = lines(random, random.randint(0, 4), random.choice(['', '', '\n']), words)
            if random.random() < 0.1:
                new = None
            recorder.run('str_replace', path, old_str=old, new_str=new)
        elif kind == 'insert':
            line = random.randint(-1, count + 1)
            recorder.run('insert', path, insert_line=line, new_str=lines(random, random.randint(0, 4), '', words))
        elif kind == 'undo':
            recorder.run('undo_edit', path)
        elif kind == 'view':
            recorder.run('view', path)
        elif kind == 'range':
            ends = [random.randint(-2, count + 3), random.randint(-2, count + 3)]
            recorder.run('view', path, view_range=ends)
        elif not mark:
            # With a mark the answer would depend on the clock: encodings are remembered by the time of the change.
            recorder.put('f.txt', lines(random, random.randint(0, 30)))


def long_edits(recorder, random):
    """A long file, whose diff leaves common lines aside."""
    path = ROOT + '/long.txt'
    count = random.randint(190, 420)
    text = ''.join(random.choice(['}', '', 'return', f'line {line}', f'line {line % 37}']) + '\n' for line in range(count))
    recorder.put('long.txt', text)
    for _ in range(random.randint(2, 6)):
        with open(os.path.join(recorder.root, 'long.txt')) as file:
            now = file.read().split('\n')
        start = random.randint(0, len(now) - 1)
        old = '\n'.join(now[start:start + random.randint(1, 60)])
        middle = now[random.randint(0, len(now) - 1):][:random.randint(0, 50)]
        recorder.run('str_replace', path, old_str=old, new_str='\n'.join(random.choice([middle, middle[::-1], ['new']])))


def fixed(recorder):
    """What each rule says, and its neighbours."""
    run, put = recorder.run, recorder.put
    run('create', file_text='a\nb\nc')
    run('create', file_text='again')
    run('create')
    run('create', ROOT + '/new.txt')
    run('create', 'rel.txt', file_text='')
    run('create', 'f.txt', file_text='')
    run('view', '')
    run('view', './f.txt')
    run('create', ROOT + '/nodir/x', file_text='')
    run('create', ROOT + '/f.txt/x', file_text='')
    run('create', ROOT + '/empty', file_text='')
    run('view', ROOT + '/empty')
    run('view', ROOT + '/empty', view_range=[1, 1])
    for name in ['new.pdf', 'A.PDF', 'a.docx', 'a.xlsx', 'a.pptx', 'a.mp3', 'a.wav', 'a.m4a', 'a.FLAC']:
        run('create', f'{ROOT}/{name}', file_text='')
    run('view')
    run('view', ROOT + '/none')
    run('str_replace', ROOT + '/none', old_str='a', new_str='b')
    run('undo_edit', ROOT + '/none')
    run('nope')
    run('')
    run('nope', ROOT + '/none')
    recorder.directory('d')
    put('d/one', 'x')
    run('view', ROOT + '/d/')
    run('view', ROOT + '//./d')
    run('view', ROOT + '/d', view_range=[1, 2])
    run('view', ROOT + '/d', view_range=[])
    for command in ['str_replace', 'insert', 'undo_edit', 'create', 'nope']:
        run(command, ROOT + '/d/', old_str='a', new_str='b', insert_line=0, file_text='')
    run('view', ROOT + '/f.txt/')
    run('view', ROOT + '/none/../f.txt')
    put('thirty', ''.join(f'line {line}\n' for line in range(1, 31)))
    for ends in [[28, -1], [28, 40], [0, 2], [31, 32], [5, 3], [2, -5], [1], [1, 2, 3], [], [30, 30], [-1, 3], [1, 30]]:
        run('view', ROOT + '/thirty', view_range=ends)
    run('str_replace', old_str='b', new_str='B')
    run('str_replace', old_str='  B  ', new_str='  BB ')
    run('str_replace', old_str='BB', new_str='BB')
    run('str_replace', old_str='', new_str='')
    run('str_replace', old_str='', new_str='x')
    run('str_replace', old_str=' \t', new_str='x')
    run('str_replace', old_str=' zz ', new_str='x')
    run('str_replace', new_str='x')
    run('str_replace', old_str='BB')
    run('str_replace', old_str='c', new_str='')
    put('many', 'test one\ntest two\n')
    run('str_replace', ROOT + '/many', old_str='test', new_str='sample')
    run('str_replace', ROOT + '/many', old_str='t', new_str='T')
    put('blocks', 'x\ny\nz\n\n\n\nx\ny\nz\n')
    run('str_replace', ROOT + '/blocks', old_str='x\ny\nz', new_str='T')
    put('overlap', 'aaa\n')
    run('str_replace', ROOT + '/overlap', old_str='aa', new_str='b')
    run('str_replace', ROOT + '/empty', old_str='', new_str='filled\n')
    run('undo_edit', ROOT + '/empty')
    run('str_replace', ROOT + '/empty', old_str='  ', new_str=' trimmed ')
    run('insert', ROOT + '/many', insert_line=1, new_str='line')
    run('insert', ROOT + '/many', insert_line=10, new_str='line')
    run('insert', ROOT + '/many', insert_line=-1, new_str='line')
    run('insert', ROOT + '/many', insert_line=1, new_str='')
    run('insert', ROOT + '/many', insert_line=0, new_str='top\n')
    run('insert', ROOT + '/many', new_str='x')
    run('insert', ROOT + '/many', insert_line=1)
    run('insert', ROOT + '/many')
    for _ in range(5):
        run('undo_edit', ROOT + '/many')
    for _ in range(6):
        run('undo_edit')
    run('create', ROOT + '/crlf', file_text='a\r\nb')
    run('undo_edit', ROOT + '/crlf')
    run('undo_edit', ROOT + '/crlf')
    put('mixed', 'a\r\nb\rc\n\nd')
    run('view', ROOT + '/mixed')
    run('view', ROOT + '/mixed', view_range=[2, 3])
    run('str_replace', ROOT + '/mixed', old_str='b\nc', new_str='B\r\nC')
    run('insert', ROOT + '/mixed', insert_line=1, new_str='k\r\nl\r')
    run('undo_edit', ROOT + '/mixed')
    run('undo_edit', ROOT + '/mixed')
    run('str_replace', ROOT + '/mixed', old_str='a\r\n', new_str='x')
    put('glued', 'c')
    run('insert', ROOT + '/glued', insert_line=1, new_str='end')


def history(recorder):
    """More edits than are remembered."""
    recorder.run('create', file_text='0')
    for number in range(12):
        recorder.run('str_replace', old_str=str(number), new_str=str(number + 1))
    for _ in range(12):
        recorder.run('undo_edit')


def limits(recorder):
    """Texts around the bound of what is shown."""
    for name, text in [('whole', ('Привет, мир! ' * 2000)[:16000]), ('more', ('Привет, мир! ' * 2000)[:16001]), ('lines', 'Line 1\n' * 16000), ('end', 'x' * 15999 + '\nab\n')]:
        recorder.put(name, text)
        recorder.run('view', f'{ROOT}/{name}')
    recorder.run('view', ROOT + '/lines', view_range=[10, 9000])
    recorder.put('wide', 'a\n' + 'b' * 20000 + '\nc\n')
    recorder.run('str_replace', ROOT + '/wide', old_str='a', new_str='A')
    recorder.run('insert', ROOT + '/wide', insert_line=1, new_str='n')
    recorder.run('undo_edit', ROOT + '/wide')


def directories(recorder):
    """Listings."""
    for name in ['a/b/c/deep', 'a-b', 'a/.hidden', '.hid', '.dir/inside', 'é', 'Z', 'sub/.git/config', 'sub/x.y']:
        recorder.put(name, '')
    recorder.link('to_a', 'a')
    recorder.link('broken', 'nothing')
    recorder.directory('vacant')
    for path in ['', '/a', '/.dir', '/to_a', '/sub', '/vacant', '/a/b']:
        recorder.run('view', ROOT + path)
    recorder.link('vacant/up', '..')
    recorder.run('view', ROOT + '/vacant')
    recorder.run('view', ROOT)
    recorder.link('a/self', 'self')
    recorder.run('view', ROOT + '/a')


def encodings(recorder):
    """Text that is not UTF-8 without a mark, and data."""
    samples = {
        'utf8-bom': '\ufeffabc\ndéf\n'.encode(),
        'utf16-le': b'\xff\xfe' + 'héllo\nworld\n'.encode('utf-16-le'),
        'utf32-le': b'\xff\xfe\0\0' + 'héllo\nworld\n'.encode('utf-32-le'),
        'cp1251': 'Привет мир, это обычный русский текст для проверки кодировки.\nЕще одна строка\n'.encode('cp1251'),
        'sjis': '日本語のテキストです。これはテストです。\n二行目のテキスト\n'.encode('shift_jis'),
        'nul': b'x\0y',
        'ff': b'x\xffy',
        'control': bytes(range(1, 9)) * 4,
    }
    for name, content in samples.items():
        recorder.put(name, content)
        recorder.run('view', f'{ROOT}/{name}')
        recorder.run('insert', f'{ROOT}/{name}', insert_line=1, new_str='new')
        recorder.run('undo_edit', f'{ROOT}/{name}')


def binaries():
    """What the binary test says about bytes."""
    source = random.Random(7)
    samples = [b'', b'text\n', b'\xef\xbb\xbfx', b'a\0b', b'a\xffb', b'\xff\xfea\0b\0', b'\xfe\xff\0a\0b', bytes(range(256)),
               b'\x7fELF\x02\x01\x01' + b'\0' * 9, b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR', b'%PDF-1.4\n%\xe2\xe3\xcf\xd3\n',
               b'PK\x03\x04\x14\0\0\0\x08\0', b'\x1f\x8b\x08\0\0\0\0\0', 'é'.encode(), 'é\0'.encode(), 'éàüö\0'.encode(),
               '世界和平\n'.encode(), 'Привет, мир\n'.encode(), b'\x1b[31mred\x1b[0m\n', b'\x01\x02\x03\x04\x05',
               'Моя семья и я - большая, дружная и весёлая семья\n'.encode('cp1251')]
    for size in [8, 64, 300, 1024]:
        samples += [source.randbytes(size), bytes(source.choice(b'abc \n') for _ in range(size)),
                    bytes(source.choice(b'abc \n\0') for _ in range(size)),
                    bytes(source.randint(1, 127) for _ in range(size)), bytes(source.randint(128, 254) for _ in range(size))]
    return [{'bytes': base64.b64encode(sample).decode(), 'binary': bool(is_binary_string(sample))} for sample in samples]


def diffs():
    """Diffs of texts that are nothing like each other, or very."""
    source = random.Random(11)
    cases = []
    for number in range(150):
        kinds = source.choice([2, 5, 30, 1000])
        old = [str(source.randrange(kinds)) for _ in range(source.choice([0, 1, 5, 30, 230]))]
        new = list(old)
        for _ in range(source.randint(0, 6)):
            start = source.randint(0, len(new))
            new[start:start + source.randint(0, 8)] = [str(source.randrange(kinds)) for _ in range(source.randint(0, 8))]
        if number % 3 == 0:
            new = [str(source.randrange(kinds)) for _ in range(source.choice([0, 1, 5, 30, 230]))]
        old, new = '\n'.join(old), '\n'.join(new)
        cases.append({'old': old, 'new': new, 'diff': get_diff(old, new, '/w/file')})
    return cases


def main():
    output = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), 'editor.json')
    sequences = []
    base = os.path.realpath(tempfile.mkdtemp())

    def record(fill, *arguments):
        recorder = Recorder(base, len(sequences))
        fill(recorder, *arguments)
        sequences.append(recorder.close())

    for fill in [fixed, history, limits, directories, encodings]:
        record(fill)
    for number in range(260):
        record(random_edits, random.Random(number))
    for number in range(25):
        record(long_edits, random.Random(10_000 + number))
    shutil.rmtree(base)
    with open(output, 'w') as file:
        json.dump({'sequences': sequences, 'binaries': binaries(), 'diffs': diffs()}, file, indent=0, ensure_ascii=True)
        file.write('\n')


if __name__ == '__main__':
    main()
